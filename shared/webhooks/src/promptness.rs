//! Tells endpoints that respond promptly from those that do not, by the share of answers that take long.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::ids::EndpointId;

/// An answer that takes longer than this is slow. The time runs from when the request is written, so it does not matter
/// how far away the receiver is.
pub const SLOW_AFTER: Duration = Duration::from_secs(1);
/// An attempt whose request is not even written after this time is slow as well.
pub const CONNECT_FOR: Duration = Duration::from_secs(3);

/// What a score is out of.
const WHOLE: u32 = 1 << 20;
/// Each answer has this share in the score.
const WEIGHT: u32 = 10;
/// An endpoint is slow if a fifth of its latest answers are.
const MOST: u32 = WHOLE / 5;
/// A score below this is forgotten.
const LEAST: u32 = WHOLE / 1_000;

/// What an instance has seen of its endpoints' latest answers. Each second that an attempt takes too long counts as one
/// slow answer. So one answer in a hundred after 1.2 s does not make an endpoint slow. Three in a row do, and so does an
/// attempt that hangs for three seconds.
#[derive(Debug, Default)]
pub struct Promptness(Mutex<HashMap<EndpointId, u32>>);

impl Promptness {
    /// Notes a prompt answer.
    pub fn answered(&self, endpoint: EndpointId) {
        let mut scores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(score) = scores.get_mut(&endpoint) {
            *score -= *score / WEIGHT;
            if *score < LEAST {
                scores.remove(&endpoint);
            }
        }
    }

    /// Notes that an attempt has taken a second too long. Returns whether the endpoint is slow.
    pub fn lagged(&self, endpoint: EndpointId) -> bool {
        let mut scores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let score = scores.entry(endpoint).or_default();
        *score += (WHOLE - *score) / WEIGHT;
        *score > MOST
    }

    /// Forgets an endpoint that has proved prompt.
    pub fn forget(&self, endpoint: EndpointId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&endpoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn endpoint() -> EndpointId {
        Uuid::from_u128(1).into()
    }

    #[test]
    fn one_slow_answer_in_a_hundred_does_not_make_an_endpoint_slow() {
        let seen = Promptness::default();
        for _ in 0..100 {
            assert!(!seen.lagged(endpoint()));
            (0..99).for_each(|_| seen.answered(endpoint()));
        }
        assert!(seen.0.lock().unwrap().is_empty(), "nothing is kept of prompt endpoints");
    }

    #[test]
    fn three_slow_answers_in_a_row_make_an_endpoint_slow() {
        let seen = Promptness::default();
        assert_eq!([(); 3].map(|()| seen.lagged(endpoint())), [false, false, true]);
        seen.forget(endpoint());
        assert!(!seen.lagged(endpoint()));
    }
}
