//! Limits how fast deliveries of one account enter the first lane.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::delivery::Lane;
use super::endpoint::WebhookEndpoint;
use types::ids::UserId;
use types::timestamp::Timestamp;

/// Each instance that fans out sends at most this many first attempts per account and second to the first lane. The
/// rest go to the retry lane, and so does what waits for the drain of its account.
pub const FIRST_ATTEMPTS_PER_SECOND: u32 = 10;

/// Counts the deliveries that it lets into the first lane. Without a limit, a burst of one account would delay those of
/// others, and receivers that responded promptly until now could occupy every instance that serves this lane.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    number: i64,
    admitted: HashMap<UserId, u32>,
}

impl Pace {
    /// Returns the lane for a delivery's first attempt, and counts it.
    pub(super) fn lane(&self, endpoint: &WebhookEndpoint, now: Timestamp) -> Lane {
        if !endpoint.is_prompt {
            return Lane::Retry;
        }
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if second.number != now.seconds() {
            *second = Second { number: now.seconds(), admitted: HashMap::new() };
        }
        let admitted = second.admitted.entry(endpoint.account_id).or_default();
        *admitted += 1;
        if *admitted <= FIRST_ATTEMPTS_PER_SECOND { Lane::First } else { Lane::Retry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Switch;
    use types::rotation::Secrets;
    use uuid::Uuid;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn endpoint(account: u128, number: u128) -> WebhookEndpoint {
        WebhookEndpoint {
            id: Uuid::from_u128(1_000 * account + number).into(),
            account_id: Uuid::from_u128(account).into(),
            url: "https://hooks.example.com/".to_owned(),
            events: [].into(),
            switch: Switch::On,
            epoch: 1,
            created_at: at(0),
            secrets: Secrets::first("sealed".to_owned(), at(0)),
            secret_version: 1,
            is_prompt: true,
            warning: None,
            full_since: None,
            full_told_at: None,
        }
    }

    /// Returns how many of the deliveries to ten endpoints of an account enter the first lane. Each endpoint has two.
    fn admitted(pace: &Pace, account: u128, now: Timestamp) -> usize {
        let endpoints = (0..20).map(|delivery| endpoint(account, delivery % 10));
        let lanes: Vec<Lane> = endpoints.map(|endpoint| pace.lane(&endpoint, now)).collect();
        let first = lanes.iter().filter(|lane| **lane == Lane::First).count();
        assert_eq!(lanes.iter().filter(|lane| **lane == Lane::Retry).count(), lanes.len() - first);
        first
    }

    #[test]
    fn ten_endpoints_of_an_account_share_its_ten_first_attempts_of_a_second() {
        let pace = Pace::default();
        let admitted = [5_000, 5_999, 6_000].map(|millis| admitted(&pace, 1, at(millis)));
        assert_eq!(admitted, [10, 0, 10]);
    }

    #[test]
    fn ten_accounts_have_ten_first_attempts_each() {
        let pace = Pace::default();
        let admitted: Vec<usize> = (1..=10).map(|account| admitted(&pace, account, at(5_000))).collect();
        assert_eq!(admitted, [10; 10]);
    }

    #[test]
    fn deliveries_that_wait_for_a_drain_take_none_of_the_first_attempts() {
        let pace = Pace::default();
        let unproven = WebhookEndpoint { is_prompt: false, ..endpoint(1, 12) };
        assert_eq!([(); 20].map(|()| pace.lane(&unproven, at(5_000))), [Lane::Retry; 20]);
        assert_eq!(admitted(&pace, 1, at(5_000)), 10);
    }
}
