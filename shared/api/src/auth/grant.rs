//! What the gate decides about a request, and what the rate-limit headers show of it.

use common::ids::KeyId;
use common::scope::{Budget, Scope};
use common::store::StoreError;
use common::timestamp::Timestamp;

use super::table::KeyRecord;

/// The state of a budget, as the rate-limit headers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per minute, or 0 if no key write was completed.
    pub limit: u32,
    /// Tokens left in this minute.
    pub remaining: u32,
    /// Seconds until the next minute, 1 to 60.
    pub reset: u32,
    /// Whether a key write has shown limit and tokens.
    pub known: bool,
}

impl Rate {
    /// Returns the state that is shown if no key write was completed.
    pub fn none(now: Timestamp) -> Self {
        Self { limit: 0, remaining: 0, reset: now.seconds_to_next_minute(), known: false }
    }
}

/// A request that took a token.
#[derive(Debug)]
pub struct Grant {
    /// The key as it stood after the write.
    pub key: KeyRecord,
    /// The budget after the write.
    pub rate: Rate,
    /// Counters to remove with `Gate::clean_up`. Usually there are none.
    pub stale: Vec<String>,
}

/// A request that did not get a token.
#[derive(Clone, Debug)]
pub struct Refused {
    pub reason: Refusal,
    /// The budget, if it is known, or else [`Rate::none`].
    pub rate: Rate,
    /// The key, if it is known.
    pub key_id: Option<KeyId>,
}

impl Refused {
    /// Returns a refusal that shows no budget.
    pub fn without_budget(reason: Refusal, now: Timestamp) -> Self {
        Self { reason, rate: Rate::none(now), key_id: None }
    }
}

/// Why a request took no token.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The key is unknown, revoked or expired. The response does not say which (specification 5.4.2).
    KeyInvalid,
    /// The key is valid, but lacks the scope.
    ScopeMissing(Scope),
    /// The tokens of this minute are spent.
    BudgetSpent {
        budget: Budget,
        limit: u32,
        /// Seconds until the next minute, 1 to 60.
        retry_after: u32,
    },
    /// The key write failed, or was not decided in time.
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
