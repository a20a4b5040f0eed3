//! Tells endpoints that begin to respond slowly.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::ids::EndpointId;

/// An answer that takes longer than this is slow. The time runs from when the request is written, so it does not matter
/// how far away the receiver is.
pub const SLOW_AFTER: Duration = Duration::from_secs(1);
/// An attempt whose request is not even written after this time is slow as well.
pub const CONNECT_FOR: Duration = Duration::from_secs(3);
/// For how long an endpoint that was slow is left to the drain at least, in seconds. So a receiver that hangs again and
/// again occupies few instances.
pub const SLOW_FOR_SECONDS: i64 = 5 * 60;
/// An endpoint is slow after this many lags since its last prompt answer.
const MAX_LAGS: u32 = 3;

/// How often each endpoint has lagged since its last prompt answer, as far as an instance has seen. Each second that an
/// attempt takes too long is a lag. So one slow answer does not make an endpoint slow. Three in a row do, and so does an
/// attempt that hangs for three seconds.
#[derive(Debug, Default)]
pub struct Promptness(Mutex<HashMap<EndpointId, u32>>);

impl Promptness {
    /// Notes a prompt answer, or that an endpoint has proved prompt.
    pub fn answered(&self, endpoint: EndpointId) {
        self.lags().remove(&endpoint);
    }

    /// Notes that an attempt has taken another second too long. `of_attempt` is how many such seconds it has had, this one
    /// included. Returns whether the endpoint is slow. Prompt answers to other attempts do not make up for one that hangs.
    pub fn lagged(&self, endpoint: EndpointId, of_attempt: u32) -> bool {
        let mut lags = self.lags();
        let lags = lags.entry(endpoint).or_default();
        *lags += 1;
        (*lags).max(of_attempt) >= MAX_LAGS
    }

    fn lags(&self) -> MutexGuard<'_, HashMap<EndpointId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn three_lags_since_the_last_prompt_answer_make_an_endpoint_slow() {
        let (seen, endpoint) = (Promptness::default(), Uuid::from_u128(1).into());
        for _ in 0..100 {
            assert_eq!([(); 2].map(|()| seen.lagged(endpoint, 1)), [false; 2]);
            seen.answered(endpoint);
        }
        assert!(seen.lags().is_empty(), "nothing is kept of prompt endpoints");
        assert_eq!([(); 3].map(|()| seen.lagged(endpoint, 1)), [false, false, true]);
        seen.answered(endpoint);
        assert!(seen.lagged(endpoint, 3), "one attempt hangs");
    }
}
