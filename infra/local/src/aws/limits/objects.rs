//! Limits of S3: requests per second and prefix.
//!
//! S3 divides a bucket by prefixes as its load grows. Here the text before the first `/` of a key is the prefix.

use std::collections::HashMap;

use tokio::time::Instant;

use super::bucket::Bucket;
use super::config::ObjectLimits;
use super::usage::Access;

/// A request for an object, as far as the limits apply to it.
pub(in crate::aws) struct ObjectRequest<'a> {
    pub(in crate::aws) prefix: &'a str,
    pub(in crate::aws) access: Access,
    /// The length of what is to be written.
    pub(in crate::aws) bytes: usize,
}

/// The token buckets of all prefixes.
pub(super) struct Prefixes {
    limits: ObjectLimits,
    by_prefix: HashMap<(String, Access), Bucket>,
}

impl Prefixes {
    /// Makes buckets that are full.
    pub(super) fn new(limits: ObjectLimits) -> Self {
        Self { limits, by_prefix: HashMap::new() }
    }

    /// Takes one request. Returns false if its prefix admits no more of this kind.
    pub(super) fn take(&mut self, prefix: &str, access: Access, now: Instant) -> bool {
        let rate = match access {
            Access::Read => self.limits.gets,
            Access::Write => self.limits.puts,
        };
        let bucket = self.by_prefix.entry((prefix.to_owned(), access)).or_insert_with(|| Bucket::full(rate, now));
        bucket.take_one(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Prefixes;
    use crate::aws::limits::config::{ObjectLimits, Rate};
    use crate::aws::limits::usage::Access;

    #[test]
    fn each_prefix_admits_as_many_requests_of_each_kind_as_its_rate() {
        let limits = ObjectLimits { gets: Rate::with_a_second(3.0), puts: Rate::once(1.0), ..ObjectLimits::UNLIMITED };
        let (mut prefixes, start) = (Prefixes::new(limits), Instant::now());
        let mut admitted = |prefix, access, after_millis| {
            let now = start + Duration::from_millis(after_millis);
            (0..10).filter(|_| prefixes.take(prefix, access, now)).count()
        };
        assert_eq!(admitted("a", Access::Read, 0), 3);
        assert_eq!(admitted("a", Access::Write, 0), 1);
        assert_eq!(admitted("b", Access::Read, 0), 3);
        assert_eq!(admitted("a", Access::Read, 700), 2);
        assert_eq!(admitted("a", Access::Write, 60_000), 0);
    }

    #[test]
    fn an_unlimited_prefix_admits_everything() {
        let (mut prefixes, now) = (Prefixes::new(ObjectLimits::UNLIMITED), Instant::now());
        assert!((0..100_000).all(|_| prefixes.take("a", Access::Read, now)));
    }
}
