//! Token buckets: one for each partition key, and one for each table or index.

use std::collections::HashMap;

use tokio::time::Instant;

use super::config::{Limits, Rate, Throughput};
use super::report::Reason;
use super::usage::{Access, Resource, Use};

/// A token bucket that admits a call while it holds anything. The call may leave it in debt, because the cost of a
/// read is known only afterwards. In `t` seconds a bucket gives at most `rate * t + burst` units and one call's debt.
pub(super) struct Bucket {
    rate: Rate,
    level: f64,
    filled_at: Instant,
}

impl Bucket {
    pub(super) fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, level: rate.burst, filled_at: now }
    }

    /// Takes one whole unit, if the bucket holds one.
    pub(super) fn take_one(&mut self, now: Instant) -> bool {
        self.fill(now);
        let is_there = self.level >= 1.0;
        if is_there {
            self.level -= 1.0;
        }
        is_there
    }

    fn fill(&mut self, now: Instant) {
        let earned = self.rate.per_second * now.duration_since(self.filled_at).as_secs_f64();
        self.level = (self.level + earned).min(self.rate.burst);
        self.filled_at = now;
    }
}

/// The buckets of all tables.
pub(super) struct Buckets {
    partition: Throughput,
    table: Throughput,
    only_table: Option<&'static str>,
    by_key: HashMap<BucketKey, Bucket>,
}

/// Names a bucket. Without a partition it is that of the whole table or index.
#[derive(PartialEq, Eq, Hash)]
struct BucketKey {
    resource: Resource,
    partition: Option<String>,
    access: Access,
}

impl Buckets {
    /// Makes buckets that are full.
    pub(super) fn new(limits: &Limits) -> Self {
        let Limits { partition, table, only_table, .. } = *limits;
        Self { partition, table, only_table, by_key: HashMap::new() }
    }

    /// Returns which of the buckets is empty that this use needs, if one is.
    pub(super) fn shortage(&mut self, used: &Use, now: Instant) -> Option<Reason> {
        if self.only_table.is_some_and(|table| table != used.resource.table) {
            return None;
        }
        if used.partition.is_some() && self.bucket(used, true, now).level <= 0.0 {
            return Some(Reason::Partition);
        }
        (self.bucket(used, false, now).level <= 0.0).then_some(Reason::Table)
    }

    /// Takes the units, even if the buckets do not hold as many.
    pub(super) fn take(&mut self, used: &Use, now: Instant) {
        if used.partition.is_some() {
            self.bucket(used, true, now).level -= used.units;
        }
        self.bucket(used, false, now).level -= used.units;
    }

    fn bucket(&mut self, used: &Use, of_partition: bool, now: Instant) -> &mut Bucket {
        let throughput = if of_partition { self.partition } else { self.table };
        let rate = match used.access {
            Access::Read => throughput.read,
            Access::Write => throughput.write,
        };
        let partition = used.partition.clone().filter(|_| of_partition);
        let key = BucketKey { resource: used.resource.clone(), partition, access: used.access };
        let bucket = self.by_key.entry(key).or_insert_with(|| Bucket::full(rate, now));
        bucket.fill(now);
        bucket
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Buckets;
    use crate::aws::limits::config::{Limits, Rate, Throughput};
    use crate::aws::limits::report::Reason;
    use crate::aws::limits::usage::{Access, Resource, Use};

    fn read(partition: &str, units: f64) -> Use {
        let partition = Some(partition.to_owned());
        Use { resource: Resource::table("t"), partition, access: Access::Read, units }
    }

    fn buckets(partition: f64, table: f64) -> Buckets {
        let throughput = |units| Throughput { read: Rate::with_a_second(units), write: Rate::UNLIMITED };
        Buckets::new(&Limits { partition: throughput(partition), table: throughput(table), ..Limits::unlimited() })
    }

    #[test]
    fn a_debt_is_paid_before_the_next_call() {
        let (mut buckets, start) = (buckets(10.0, 100.0), Instant::now());
        buckets.take(&read("a", 25.0), start);
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(buckets.shortage(&read("a", 1.0), at(1_500)), Some(Reason::Partition));
        assert_eq!(buckets.shortage(&read("b", 1.0), at(1_500)), None);
        assert_eq!(buckets.shortage(&read("a", 1.0), at(1_600)), None);
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let (mut buckets, start) = (buckets(10.0, 100.0), Instant::now());
        buckets.take(&read("a", 1.0), start);
        let later = start + Duration::from_hours(1);
        assert_eq!(buckets.shortage(&read("a", 1.0), later), None);
        buckets.take(&read("a", 10.0), later);
        assert_eq!(buckets.shortage(&read("a", 1.0), later), Some(Reason::Partition));
    }

    #[test]
    fn partitions_share_the_tables_bucket() {
        let (mut buckets, now) = (buckets(10.0, 20.0), Instant::now());
        buckets.take(&read("a", 10.0), now);
        buckets.take(&read("b", 10.0), now);
        assert_eq!(buckets.shortage(&read("c", 1.0), now), Some(Reason::Table));
    }

    #[test]
    fn the_throughput_of_other_tables_is_unlimited_if_only_one_is_limited() {
        let nothing = Throughput { read: Rate::once(0.0), write: Rate::once(0.0) };
        for (only_table, refused) in [(None, true), (Some("t"), true), (Some("other"), false)] {
            let limits = Limits { partition: nothing, table: nothing, only_table, ..Limits::unlimited() };
            let shortage = Buckets::new(&limits).shortage(&read("a", 1.0), Instant::now());
            assert_eq!(shortage.is_some(), refused, "{only_table:?}");
        }
    }

    #[test]
    fn unlimited_buckets_stay_unlimited() {
        let (mut buckets, now) = (Buckets::new(&Limits::unlimited()), Instant::now());
        for _ in 0..3 {
            buckets.take(&read("a", 1e9), now);
            assert_eq!(buckets.shortage(&read("a", 1.0), now), None);
        }
    }
}
