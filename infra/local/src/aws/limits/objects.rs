//! Limits of S3: requests per second and prefix, and latencies.
//!
//! S3 divides a bucket by prefixes as its load grows. Here the text before the first `/` of a key is the prefix.

use std::collections::HashMap;
use std::future::Future;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use tokio::time::{Instant, sleep};

use super::bucket::Bucket;
use super::config::ObjectLimits;
use super::limiter::Limiter;
use super::usage::Access;

/// The answer of S3 to requests that come too fast.
const SLOW_DOWN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>local</RequestId></Error>"#;

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

impl ObjectReport {
    pub(super) fn count(&mut self, access: Access, is_admitted: bool) {
        let count = match access {
            _ if !is_admitted => &mut self.refused,
            Access::Read => &mut self.gets,
            Access::Write => &mut self.puts,
        };
        *count += 1;
    }

    pub(super) fn add_bytes(&mut self, access: Access, bytes: usize) {
        let sum = match access {
            Access::Read => &mut self.read_bytes,
            Access::Write => &mut self.written_bytes,
        };
        *sum += bytes as u64;
    }
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

/// Performs a request if its prefix admits it, in the time that S3 takes for it.
pub(in crate::aws) async fn answer(
    limiter: &Limiter,
    request: &ObjectRequest<'_>,
    perform: impl Future<Output = Response<Bytes>>,
) -> Response<Bytes> {
    sleep(limiter.begin_object()).await;
    if !limiter.take_object(request) {
        return slow_down();
    }
    let answer = perform.await;
    if answer.status().is_success() {
        let bytes = match request.access {
            Access::Read => answer.body().len(),
            Access::Write => request.bytes,
        };
        sleep(limiter.move_bytes(request.access, bytes)).await;
    }
    answer
}

fn slow_down() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(SLOW_DOWN.as_bytes()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
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
