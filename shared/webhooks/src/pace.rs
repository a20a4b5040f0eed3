//! How fast deliveries to one endpoint enter the lane of first attempts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::delivery::Lane;
use super::endpoint::Endpoint;
use types::ids::EndpointId;
use types::timestamp::Timestamp;

/// So many a second, of each instance that fans out; the others take the other lane.
const A_SECOND: u32 = 10;

/// Counts what it lets into the lane of first attempts. Before an endpoint is known to be slow, its deliveries
/// would otherwise occupy every instance that attends to that lane, if only there are enough of them.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    number: i64,
    admitted: HashMap<EndpointId, u32>,
}

impl Pace {
    /// The lane of a delivery's first attempt.
    pub(super) fn lane(&self, endpoint: &Endpoint, now: Timestamp) -> Lane {
        if endpoint.is_slow(now) {
            return Lane::Retry;
        }
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if second.number != now.seconds() {
            *second = Second { number: now.seconds(), admitted: HashMap::new() };
        }
        let admitted = second.admitted.entry(endpoint.id).or_default();
        *admitted += 1;
        if *admitted <= A_SECOND { Lane::First } else { Lane::Retry }
    }
}
