//! The line that `local` prints about what DynamoDB and S3 refused.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::limiter::Limiter;
use super::report::{Reason, Refusal, Report};
use super::usage::Access;

const INTERVAL: Duration = Duration::from_secs(1);
/// How many kinds of refusals a line lists.
const MAX_LISTED: usize = 3;

/// Prints what is refused, at most one line per second. Takes the reports of the limiter.
pub async fn print_refusals(limiter: Arc<Limiter>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        if let Some(line) = line(&limiter.take_report()) {
            eprintln!("local: {line}");
        }
    }
}

fn line(report: &Report) -> Option<String> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for refusal in &report.refused {
        *kinds.entry(kind(refusal)).or_default() += 1;
    }
    let objects = &report.objects;
    if let Some(refused) = usize::try_from(objects.refused).ok().filter(|refused| *refused > 0) {
        kinds.insert("request to S3: over those of the prefix".to_owned(), refused);
    }
    let mut kinds: Vec<(String, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| Reverse(*count));
    let listed: Vec<String> = kinds.iter().take(MAX_LISTED).map(|(kind, count)| format!("{count} x {kind}")).collect();
    let calls = report.calls + objects.gets + objects.puts + objects.refused;
    (!listed.is_empty()).then(|| format!("refused in a second with {calls} calls: {}", listed.join(", ")))
}

/// Names the operation, the table or index, and the part of the partition key that names no user and no API key.
fn kind(refusal: &Refusal) -> String {
    let Refusal { operation, resource, partition, .. } = refusal;
    let table =
        resource.index.as_ref().map_or_else(|| resource.table.clone(), |index| format!("{}/{index}", resource.table));
    let cause = match (refusal.reason, refusal.access) {
        (Reason::Conflict | Reason::InProgress, _) => "met a transaction",
        (Reason::Partition, Access::Read) => "over the read units of the partition",
        (Reason::Partition, Access::Write) => "over the write units of the partition",
        (Reason::Table, Access::Read) => "over the read units of the table",
        (Reason::Table, Access::Write) => "over the write units of the table",
    };
    match partition.as_deref().and_then(|partition| partition.split('#').next()) {
        Some(name) => format!("{operation} in {table} {name}: {cause}"),
        None => format!("{operation} in {table}: {cause}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, Report, line};
    use crate::aws::limits::object_report::ObjectReport;
    use crate::aws::limits::report::Reason;
    use crate::aws::limits::usage::{Access, Resource};

    #[test]
    fn a_line_counts_refusals_of_the_same_kind_and_names_no_user() {
        let refusal = |partition: &str, reason| Refusal {
            operation: "UpdateItem".to_owned(),
            resource: Resource::table("keys"),
            partition: Some(partition.to_owned()),
            access: Access::Write,
            reason,
        };
        let refused = vec![
            refusal("key#1", Reason::Partition),
            refusal("key#2", Reason::Conflict),
            refusal("key#3", Reason::Conflict),
        ];
        let objects = ObjectReport { gets: 4, refused: 5, ..ObjectReport::default() };
        let report = Report { calls: 9, refused, objects, ..Report::default() };
        let expected = "refused in a second with 18 calls: 5 x request to S3: over those of the prefix, \
                        2 x UpdateItem in keys key: met a transaction, \
                        1 x UpdateItem in keys key: over the write units of the partition";
        assert_eq!(line(&report).as_deref(), Some(expected));
        assert_eq!(line(&Report::default()), None);
    }
}
