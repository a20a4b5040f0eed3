//! An account's share of the workers: three places for attempts that may take long.
//!
//! A receiver that hangs occupies a worker for ten seconds. So an attempt needs a place, unless its endpoint is known to
//! respond promptly. The places are in the account's row, which every batch reads, so they hold across all instances and
//! lanes. An attempt without a place leaves, and comes back later. Nobody but the account itself waits for that.

use types::ids::EndpointId;
use types::timestamp::Timestamp;

use crate::delivery::{Dispatch, LEASE_SECONDS, Token};

/// The number of an account's places.
pub const PLACES: usize = 3;
/// The shortest delay of a first attempt that leaves, in seconds, if no endpoint of its account is slow. Then the places
/// are free again soon. It doubles each time.
const FIRST_TURN_SECONDS: u32 = 2;
/// The same if an endpoint of its account is slow. Each return costs a write, so it is worth waiting longer.
const SLOW_TURN_SECONDS: u32 = 30;
/// The longest delay of a first attempt that leaves.
const LONGEST_TURN_SECONDS: u32 = 60 * 60;
/// The shortest delay of a retry that leaves, in seconds. It doubles each time.
const RETRY_TURN_SECONDS: u32 = 10;
/// The longest delay of a retry that leaves.
const LONGEST_RETRY_TURN_SECONDS: u32 = 5 * 60;
/// How much longer than a retry's delay first attempts leave the places to it, in seconds.
const RESERVE_SECONDS: u32 = 60;

/// The places of an account, and for whom they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Share {
    pub places: [Option<Place>; PLACES],
    /// Until then a retry waits for a place, and first attempts take none.
    pub reserved_until: Option<Timestamp>,
}

/// The right to occupy a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub endpoint_id: EndpointId,
    /// Tells the holder from all others.
    pub holder: Token,
    /// The place is free after this time, even if its holder has not left it.
    pub until: Timestamp,
}

impl Place {
    /// Returns the place of an attempt that begins now.
    pub fn new(endpoint_id: EndpointId, holder: Token, now: Timestamp) -> Self {
        Self { endpoint_id, holder, until: now.plus_millis(LEASE_SECONDS * 1_000) }
    }
}

impl Share {
    /// Returns the numbers of the places that an attempt to this endpoint may take. There is none if the endpoint has
    /// one already, or if the places are kept for retries and this is none.
    pub fn free(&self, endpoint: EndpointId, is_retry: bool, now: Timestamp) -> Vec<usize> {
        let taken = |place: &Option<Place>| place.filter(|place| place.until >= now);
        let has_one = self.places.iter().filter_map(taken).any(|place| place.endpoint_id == endpoint);
        if has_one || (!is_retry && self.is_reserved(now)) {
            return Vec::new();
        }
        (0..PLACES).filter(|number| taken(&self.places[*number]).is_none()).collect()
    }

    /// Returns whether first attempts leave the places to retries.
    pub fn is_reserved(&self, now: Timestamp) -> bool {
        self.reserved_until.is_some_and(|until| until >= now)
    }
}

/// Why an attempt finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowding {
    /// None of the account's endpoints is known to be slow: other attempts will end soon, or show which endpoint is.
    Unknown,
    /// An endpoint of the account is slow.
    Slow,
}

/// Returns the shortest delay of an attempt that leaves without a place, in seconds before scaling. The delay is a
/// random time from this to twice this.
pub fn turn_seconds(dispatch: &Dispatch, crowding: Crowding) -> u32 {
    let (shortest, longest) = match crowding {
        _ if dispatch.is_retry() => (RETRY_TURN_SECONDS, LONGEST_RETRY_TURN_SECONDS),
        Crowding::Unknown => (FIRST_TURN_SECONDS, LONGEST_TURN_SECONDS),
        Crowding::Slow => (SLOW_TURN_SECONDS, LONGEST_TURN_SECONDS),
    };
    shortest.saturating_mul(1 << dispatch.turns.min(16)).min(longest)
}

/// For how long a retry that leaves needs the places, and for how long they are kept for it, in seconds before scaling.
/// The retry is back before either ends, and then finds no first attempt in its place.
pub fn reserved_seconds(dispatch: &Dispatch) -> (u32, u32) {
    let longest = 2 * turn_seconds(dispatch, Crowding::Slow);
    (longest, longest + RESERVE_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn endpoint(number: u128) -> EndpointId {
        Uuid::from_u128(number).into()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn place(number: u128) -> Place {
        Place::new(endpoint(number), Token(Uuid::from_u128(number)), at(0))
    }

    #[test]
    fn an_endpoint_has_one_place_and_an_account_three() {
        let share = Share { places: [Some(place(1)), None, None], reserved_until: None };
        assert_eq!(share.free(endpoint(1), false, at(1)), [0; 0]);
        assert_eq!(share.free(endpoint(2), false, at(1)), [1, 2]);
        let full = Share { places: [1, 2, 3].map(|number| Some(place(number))), reserved_until: None };
        assert_eq!(full.free(endpoint(4), true, at(1)), [0; 0]);
        assert_eq!(full.free(endpoint(1), true, at(LEASE_SECONDS + 1)), [0, 1, 2]);
    }

    #[test]
    fn while_a_retry_waits_first_attempts_take_no_place() {
        let share = Share { reserved_until: Some(at(60)), ..Share::default() };
        assert_eq!(share.free(endpoint(1), false, at(60)), [0; 0]);
        assert_eq!(share.free(endpoint(1), true, at(60)), [0, 1, 2]);
        assert_eq!(share.free(endpoint(1), false, at(61)), [0, 1, 2]);
    }

    #[test]
    fn an_attempt_leaves_for_longer_each_time_and_a_retry_for_five_minutes_at_most() {
        let call = |attempt, turns| Dispatch {
            delivery_id: Uuid::nil().into(),
            account_id: Uuid::nil().into(),
            endpoint_id: endpoint(1),
            round: 1,
            attempt,
            token: Token(Uuid::nil()),
            turns,
        };
        let seconds = |crowding| [0, 1, 2, 8, u32::MAX].map(|turns| turn_seconds(&call(1, turns), crowding));
        assert_eq!(seconds(Crowding::Unknown), [2, 4, 8, 512, 3_600]);
        assert_eq!(seconds(Crowding::Slow), [30, 60, 120, 3_600, 3_600]);
        assert_eq!([0, 1, 8].map(|turns| turn_seconds(&call(2, turns), Crowding::Slow)), [10, 20, 300]);
        assert_eq!([0, 8].map(|turns| reserved_seconds(&call(2, turns))), [(20, 80), (600, 660)]);
    }
}
