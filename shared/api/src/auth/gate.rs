//! The gate: finds out whose key a request carries, whether that key may do this, and whether a token is left. It
//! remembers whom it admitted, and whom it refused a moment ago.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use common::aws::{Missing, Patience};
use common::clock::{Clock, Moment};
use common::ids::UserId;
use common::preflight;
use common::resources::Table;
use common::runtime::Service;
use common::scope::Budget;
use common::store::{StoreError, retry_conflicts};
use common::timestamp::Timestamp;
use lru::LruCache;
use tokio::sync::OwnedMutexGuard;

use crate::auth::bucket::{Grant, Refusal, Refused, TokenRequest, clean_up};
use crate::auth::table;
use crate::auth::text::KeyHash;

/// How often the key write is tried. It meets a conflict only while its key is being rotated.
const CONFLICT_ATTEMPTS: u32 = 4;

/// Admits requests by one conditional write each. Refuses them by such a write, or as it did a moment ago.
pub struct Gate {
    client: Client,
    table: String,
    clock: Arc<dyn Clock>,
    memory: Memory,
}

impl Gate {
    pub fn new(client: Client, table: String, clock: Arc<dyn Clock>) -> Self {
        let memory = Memory::new(Arc::clone(&clock));
        Self { client, table, clock, memory }
    }

    /// Makes a gate over the keys table that the environment names.
    pub fn from_service(service: &Service<'_>) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Keys, Patience::Request, preflight::update)?;
        Ok(Self::new(client, table, Arc::clone(&service.clock)))
    }

    /// Returns the user of a key that this instance has admitted to this budget before and still remembers. A key's
    /// user never changes.
    pub fn remembered_user(&self, key: &KeyHash, budget: Budget) -> Option<UserId> {
        self.memory.user(&(*key, budget))
    }

    /// Takes a token from the budget, or returns why the request is refused.
    pub async fn admit(&self, key: &KeyHash, budget: Budget) -> Result<Grant, Refused> {
        let key_use = (*key, budget);
        // Held until the verdict is remembered.
        let _turn = self.memory.turn(&key_use).await;
        let now = self.clock.now();
        if let Some(refused) = self.memory.refusal(&key_use, now) {
            return Err(refused);
        }
        let verdict = self.decide(&key_use, now).await;
        self.memory.remember(key_use, now, &verdict);
        verdict
    }

    async fn decide(&self, key_use: &KeyUse, now: Timestamp) -> Result<Grant, Refused> {
        let (key, budget) = key_use;
        let failed = |error: StoreError| Refused::without_budget(error.into(), now);
        if !self.memory.may_write(key_use) && !self.is_there(key).await.map_err(failed)? {
            return Err(Refused::without_budget(Refusal::KeyInvalid, now));
        }
        self.attempt(&TokenRequest::new(*budget, now)?, key).await
    }

    /// Removes stale counters. If the call fails, a later one removes them.
    pub async fn clean_up(&self, key: &KeyHash, stale: &[String]) {
        if let Err(error) = clean_up(self.update(key), stale).send().await {
            tracing::warn!(error = %StoreError::from(error), "stale counters stay until the next clean-up");
        }
    }

    /// Returns whether there is such a key, revoked or not.
    async fn is_there(&self, key: &KeyHash) -> Result<bool, StoreError> {
        let get = self.client.get_item().table_name(&self.table).set_key(Some(table::key_row(key)));
        let get = get.consistent_read(true).projection_expression("#pk").expression_attribute_names("#pk", table::PK);
        Ok(get.send().await?.item.is_some())
    }

    fn update(&self, key: &KeyHash) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.table).set_key(Some(table::key_row(key)))
    }

    /// Sends the write of an attempt, again if the key is being changed at the same moment.
    async fn attempt(&self, attempt: &TokenRequest, key: &KeyHash) -> Result<Grant, Refused> {
        let outcome = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            match attempt.take(self.update(key)).send().await {
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
        });
        outcome.await.unwrap_or_else(|error| Err(Refused::without_budget(error.into(), attempt.now)))
    }
}

/// How long an instance repeats a refusal without asking the table. Otherwise each request of a client that keeps asking
/// would be a write, and could use up the write capacity of one row.
const REPEAT_REFUSAL_FOR: Duration = Duration::from_secs(1);
/// How many writes a second an instance makes for keys that it has never admitted. Beyond these it first reads whether
/// there is such a key, which costs a fifth of the write. So a flood of invented keys, whose checksum anybody can compute,
/// takes no write capacity, and a key that is new to the instance waits for one more round trip.
pub const STRANGERS_A_SECOND: u32 = 20;
/// How many entries each memory of an instance may have. A full one forgets the entry that was not used for longest.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A key, and the budget that a request wants to use with it.
type KeyUse = (KeyHash, Budget);

/// What an instance remembers. No verdict that admits is remembered, only whose key it was.
struct Memory {
    clock: Arc<dyn Clock>,
    /// The users of keys that were admitted, and not refused for another reason than their budget since.
    users: Mutex<LruCache<KeyUse, UserId>>,
    refusals: Mutex<LruCache<KeyUse, RememberedRefusal>>,
    turns: Mutex<LruCache<KeyUse, Arc<tokio::sync::Mutex<()>>>>,
    /// When a second began, and the writes in it for keys that were never admitted.
    strangers: Mutex<Option<(Moment, u32)>>,
}

struct RememberedRefusal {
    refused: Refused,
    at: Moment,
    minute: i64,
}

impl Memory {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            users: Mutex::new(LruCache::sparse(MAX_REMEMBERED)),
            refusals: Mutex::new(LruCache::sparse(MAX_REMEMBERED)),
            turns: Mutex::new(LruCache::sparse(MAX_REMEMBERED)),
            strangers: Mutex::new(None),
        }
    }

    /// Returns the user of a key that was admitted and is still remembered.
    fn user(&self, key_use: &KeyUse) -> Option<UserId> {
        lock(&self.users).get(key_use).copied()
    }

    /// Waits until no other request with a key that is not known to be good is being decided. The turn ends when the
    /// returned value is dropped. A key that is known to be good waits for nobody, and gets none.
    ///
    /// So of many requests with a bad key at the same time, one asks the table, and the others repeat its refusal.
    async fn turn(&self, key_use: &KeyUse) -> Option<OwnedMutexGuard<()>> {
        if self.user(key_use).is_some() {
            return None;
        }
        let turn = Arc::clone(lock(&self.turns).get_or_insert(*key_use, Arc::default));
        let turn = turn.lock_owned().await;
        // The key may have been admitted while this request waited. Then those behind it need not wait either.
        self.user(key_use).is_none().then_some(turn)
    }

    /// Returns whether the table may be asked by a write: for a key that was admitted always, for others a few times a
    /// second.
    fn may_write(&self, key_use: &KeyUse) -> bool {
        if self.user(key_use).is_some() {
            return true;
        }
        let mut strangers = lock(&self.strangers);
        let (began, written) = strangers.get_or_insert_with(|| (Moment::now(&*self.clock), 0));
        if !began.is_within(Duration::from_secs(1), &*self.clock) {
            (*began, *written) = (Moment::now(&*self.clock), 0);
        }
        *written = written.saturating_add(1);
        *written <= STRANGERS_A_SECOND
    }

    /// Returns the refusal to repeat at `now`, if there is one.
    fn refusal(&self, key_use: &KeyUse, now: Timestamp) -> Option<Refused> {
        let mut refusals = lock(&self.refusals);
        let remembered = refusals.get(key_use)?;
        if remembered.at.is_within(REPEAT_REFUSAL_FOR, &*self.clock) { remembered.repeated(now) } else { None }
    }

    /// Remembers a verdict that the table gave at `now`.
    fn remember(&self, key_use: KeyUse, now: Timestamp, verdict: &Result<Grant, Refused>) {
        match verdict {
            Ok(grant) => {
                lock(&self.users).put(key_use, grant.key.user_id);
            }
            // Another try may succeed.
            Err(Refused { reason: Refusal::Store(_), .. }) => {}
            Err(refused) => {
                if !matches!(refused.reason, Refusal::BudgetSpent { .. }) {
                    lock(&self.users).pop(&key_use);
                }
                let at = Moment::now(&*self.clock);
                let remembered = RememberedRefusal { refused: refused.clone(), at, minute: now.minute() };
                lock(&self.refusals).put(key_use, remembered);
            }
        }
    }
}

impl RememberedRefusal {
    /// Returns the refusal as the table would give it at `now`. A spent budget is full again in the next minute.
    fn repeated(&self, now: Timestamp) -> Option<Refused> {
        let reset = now.seconds_to_next_minute();
        let mut refused = self.refused.clone();
        refused.rate.reset = reset;
        if let Refusal::BudgetSpent { retry_after, .. } = &mut refused.reason {
            *retry_after = reset;
            return (self.minute == now.minute()).then_some(refused);
        }
        Some(refused)
    }
}

fn lock<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
