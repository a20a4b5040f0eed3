//! What the limits refused, and what calls consumed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// What happened since the last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// How many calls to DynamoDB arrived that the limits apply to. An SDK's retries count as calls.
    pub calls: u64,
    /// What was refused, in order: calls, keys of a `BatchGetItem`, or items of a transaction.
    pub refused: Vec<Refusal>,
    /// The units consumed, by table or index and partition key. Scans have no partition.
    pub consumed: BTreeMap<(Resource, Option<String>), Units>,
    /// What S3 was asked for. Its requests are not among the calls.
    pub objects: ObjectReport,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub operation: String,
    pub resource: Resource,
    /// The partition key of what was refused. A scan has none.
    pub partition: Option<String>,
    pub access: Access,
    pub reason: Reason,
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The throughput of the partition key is used up.
    Partition,
    /// The throughput of the table or index is used up.
    Table,
    /// Another transaction holds the row.
    Conflict,
    /// The same transaction is still under way.
    InProgress,
}

/// A table, or one of its global secondary indexes, which have a throughput of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    pub table: String,
    pub index: Option<String>,
}

/// The two kinds of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
}

/// Units that a call takes. Without a partition, as for a scan, they count only for the table or index as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    pub resource: Resource,
    pub partition: Option<String>,
    pub access: Access,
    pub units: f64,
}

/// Read and write units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    pub read: f64,
    pub write: f64,
}

/// What S3 was asked for since the last report, under its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReport {
    /// Requests that read, as far as they were admitted. An SDK's retries count as requests.
    pub gets: u64,
    /// Requests that write, as far as they were admitted.
    pub puts: u64,
    /// The bytes of objects that were read.
    pub read_bytes: u64,
    /// The bytes of objects that were written.
    pub written_bytes: u64,
    /// Requests that were answered by 503.
    pub refused: u64,
}

impl Report {
    /// Returns how many were refused for this reason.
    pub fn refused_for(&self, reason: Reason) -> usize {
        self.refused.iter().filter(|refusal| refusal.reason == reason).count()
    }

    /// Returns what one partition of a table consumed, its indexes left out.
    pub fn units(&self, table: &str, partition: &str) -> Units {
        let key = (Resource::table(table), Some(partition.to_owned()));
        self.consumed.get(&key).copied().unwrap_or_default()
    }

    /// Returns what all tables and indexes consumed.
    pub fn total(&self) -> Units {
        let add = |sum: Units, of: &Units| Units { read: sum.read + of.read, write: sum.write + of.write };
        self.consumed.values().fold(Units::default(), add)
    }

    pub(super) fn add(&mut self, used: &Use) {
        if used.units > 0.0 {
            let units = self.consumed.entry((used.resource.clone(), used.partition.clone())).or_default();
            match used.access {
                Access::Read => units.read += used.units,
                Access::Write => units.write += used.units,
            }
        }
    }
}

impl Refusal {
    pub(super) fn new(operation: &str, used: &Use, reason: Reason) -> Self {
        Self {
            operation: operation.to_owned(),
            resource: used.resource.clone(),
            partition: used.partition.clone(),
            access: used.access,
            reason,
        }
    }

    /// Names the operation, the table or index, and the part of the partition key that names no user and no API key.
    fn kind(&self) -> String {
        let Self { operation, resource: Resource { table, index }, partition, .. } = self;
        let index = index.as_ref().map_or_else(String::new, |index| format!("/{index}"));
        let cause = match (self.reason, self.access) {
            (Reason::Conflict | Reason::InProgress, _) => "met a transaction",
            (Reason::Partition, Access::Read) => "over the read units of the partition",
            (Reason::Partition, Access::Write) => "over the write units of the partition",
            (Reason::Table, Access::Read) => "over the read units of the table",
            (Reason::Table, Access::Write) => "over the write units of the table",
        };
        let name = partition.as_deref().and_then(|partition| partition.split('#').next());
        let name = name.map_or_else(String::new, |name| format!(" {name}"));
        format!("{operation} in {table}{index}{name}: {cause}")
    }
}

impl Resource {
    /// Returns a table without its indexes.
    pub fn table(name: &str) -> Self {
        Self { table: name.to_owned(), index: None }
    }
}

/// Prints what is refused, at most one line per second. `take_report` returns what happened since the last call.
pub async fn print_refusals(take_report: impl Fn() -> Report) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        if let Some(line) = line(&take_report()) {
            eprintln!("local: {line}");
        }
    }
}

/// Returns a line about the three kinds of refusals that came most often.
fn line(report: &Report) -> Option<String> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for refusal in &report.refused {
        *kinds.entry(refusal.kind()).or_default() += 1;
    }
    let ObjectReport { gets, puts, refused, .. } = report.objects;
    if refused > 0 {
        kinds.insert("request to S3: over those of the prefix".to_owned(), refused);
    }
    let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| Reverse(*count));
    let listed: Vec<String> = kinds.iter().take(3).map(|(kind, count)| format!("{count} x {kind}")).collect();
    let calls = report.calls + gets + puts + refused;
    (!listed.is_empty()).then(|| format!("refused in a second with {calls} calls: {}", listed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
