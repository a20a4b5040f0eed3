//! The gate: finds out whose key a request carries, whether that key may do this, and whether a token is left.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use lru::LruCache;

use super::bucket::{TokenRequest, clean_up};
use super::grant::{Grant, Rate, Refusal, Refused};
use super::table;
use super::text::KeyHash;
use platform::aws::{Missing, Patience};
use platform::preflight;
use platform::resources::Table;
use platform::service::Service;
use platform::store::{StoreError, retry_conflicts};
use types::clock::Clock;
use types::ids::{KeyId, UserId};
use types::scope::Budget;
use types::timestamp::Timestamp;

/// How long an instance repeats a 429 without asking the table. Otherwise a client that keeps asking could use up the
/// write capacity of its key's row.
const REPEAT_REFUSAL_FOR: Duration = Duration::from_secs(1);
/// How many entries each memory of an instance may have. A full one forgets the entry that was not used for longest.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// How often the key write is tried. It meets a conflict only while its key is being rotated.
const CONFLICT_ATTEMPTS: u32 = 4;

/// Admits or refuses requests, each by one conditional write.
pub struct Gate {
    client: Client,
    table: String,
    clock: Arc<dyn Clock>,
    users: Mutex<LruCache<KeyHash, UserId>>,
    spent: Mutex<LruCache<(KeyHash, Budget), Spent>>,
}

#[derive(Clone, Copy)]
struct Spent {
    minute: i64,
    until: Duration,
    limit: u32,
    key_id: Option<KeyId>,
}

impl Gate {
    pub fn new(client: Client, table: String, clock: Arc<dyn Clock>) -> Self {
        let users = Mutex::new(LruCache::sparse(MAX_REMEMBERED));
        let spent = Mutex::new(LruCache::sparse(MAX_REMEMBERED));
        Self { client, table, clock, users, spent }
    }

    /// Makes a gate over the keys table that the environment names.
    pub fn from_service(service: &Service<'_>) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Keys, Patience::Request, preflight::update)?;
        Ok(Self::new(client, table, Arc::clone(&service.clock)))
    }

    /// Returns the user of a key that this instance has admitted before and still remembers. A key's user never
    /// changes.
    pub fn remembered_user(&self, key: &KeyHash) -> Option<UserId> {
        lock(&self.users).get(key).copied()
    }

    /// Takes a token from the budget, or returns why the request is refused.
    pub async fn admit(&self, key: &KeyHash, budget: Budget) -> Result<Grant, Refused> {
        let now = self.clock.now();
        if let Some(refused) = self.repeated_refusal(key, budget, now) {
            return Err(refused);
        }
        let mut request = [0; 16];
        getrandom::fill(&mut request)
            .map_err(|error| Refused::without_budget(StoreError::Defect(error.to_string()).into(), now))?;
        let attempt = TokenRequest { budget, now, request };
        let outcome = retry_conflicts(CONFLICT_ATTEMPTS, || self.write(key, &attempt)).await;
        let verdict = outcome.unwrap_or_else(|error| Err(Refused::without_budget(error.into(), now)));
        self.remember(key, budget, now, &verdict);
        verdict
    }

    /// Removes stale counters. If the call fails, a later one removes them.
    pub async fn clean_up(&self, key: &KeyHash, stale: &[String]) {
        let update = self.client.update_item().table_name(&self.table).set_key(Some(table::key_row(key)));
        if let Err(error) = clean_up(update, stale).send().await {
            tracing::warn!(error = %StoreError::from(error), "stale counters stay until the next clean-up");
        }
    }

    async fn write(&self, key: &KeyHash, attempt: &TokenRequest) -> Result<Result<Grant, Refused>, StoreError> {
        let update = self.client.update_item().table_name(&self.table).set_key(Some(table::key_row(key)));
        match attempt.take(update).send().await {
            Ok(taken) => {
                let row = taken.attributes().ok_or_else(|| StoreError::corrupt("no attributes returned"))?;
                Ok(Ok(attempt.granted(row)?))
            }
            Err(SdkError::ServiceError(error)) => match error.err() {
                UpdateItemError::ConditionalCheckFailedException(failed) => Ok(attempt.refused(failed.item())),
                _ => Err(SdkError::ServiceError(error).into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    fn repeated_refusal(&self, key: &KeyHash, budget: Budget, now: Timestamp) -> Option<Refused> {
        let spent = *lock(&self.spent).get(&(*key, budget))?;
        if spent.minute != now.minute() || self.clock.monotonic() >= spent.until {
            return None;
        }
        let reset = now.seconds_to_next_minute();
        Some(Refused {
            reason: Refusal::BudgetSpent { budget, limit: spent.limit, retry_after: reset },
            rate: Rate { limit: spent.limit, remaining: 0, reset },
            key_id: spent.key_id,
        })
    }

    fn remember(&self, key: &KeyHash, budget: Budget, now: Timestamp, verdict: &Result<Grant, Refused>) {
        match verdict {
            Ok(grant) => {
                lock(&self.users).put(*key, grant.key.user_id);
            }
            Err(Refused { reason: Refusal::BudgetSpent { limit, .. }, key_id, .. }) => {
                let until = self.clock.monotonic() + REPEAT_REFUSAL_FOR;
                let spent = Spent { minute: now.minute(), until, limit: *limit, key_id: *key_id };
                lock(&self.spent).put((*key, budget), spent);
            }
            Err(_) => {}
        }
    }
}

fn lock<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
