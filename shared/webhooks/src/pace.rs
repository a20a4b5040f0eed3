//! Limits how fast deliveries to one endpoint enter the first lane.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::delivery::Lane;
use super::endpoint::WebhookEndpoint;
use types::ids::EndpointId;
use types::timestamp::Timestamp;

/// Each instance that fans out sends at most this many first attempts per endpoint and second to the first lane. The
/// rest go to the retry lane, and those to an endpoint that is known to be slow to the slow lane.
const FIRST_ATTEMPTS_PER_SECOND: u32 = 10;

/// Counts the deliveries that it lets into the first lane. Without a limit, the deliveries to an endpoint that is not
/// yet known to be slow could occupy every instance that serves this lane.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    number: i64,
    admitted: HashMap<EndpointId, u32>,
}

impl Pace {
    /// Returns the lane for a delivery's first attempt, and counts it.
    pub(super) fn lane(&self, endpoint: &WebhookEndpoint, now: Timestamp) -> Lane {
        if endpoint.is_slow(now) {
            return Lane::Slow;
        }
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if second.number != now.seconds() {
            *second = Second { number: now.seconds(), admitted: HashMap::new() };
        }
        let admitted = second.admitted.entry(endpoint.id).or_default();
        *admitted += 1;
        if *admitted <= FIRST_ATTEMPTS_PER_SECOND { Lane::First } else { Lane::Retry }
    }
}
