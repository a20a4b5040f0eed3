//! What an instance remembers of the keys that it has seen: whom it admitted, and whom it refused a moment ago.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::sync::OwnedMutexGuard;

use super::grant::{Grant, Refusal, Refused};
use super::text::KeyHash;
use common::clock::{Clock, Moment};
use common::ids::UserId;
use common::scope::Budget;
use common::timestamp::Timestamp;

/// How long an instance repeats a refusal without asking the table. Otherwise each request of a client that keeps asking
/// would be a write, and could use up the write capacity of one row.
const REPEAT_REFUSAL_FOR: Duration = Duration::from_secs(1);
/// How many entries each memory of an instance may have. A full one forgets the entry that was not used for longest.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A key, and the budget that a request wants to use with it.
pub(super) type KeyUse = (KeyHash, Budget);

/// What an instance remembers. No verdict that admits is remembered, only whose key it was.
pub(super) struct Memory {
    clock: Arc<dyn Clock>,
    /// The users of keys that were admitted, and not refused for another reason than their budget since.
    users: Mutex<LruCache<KeyUse, UserId>>,
    refusals: Mutex<LruCache<KeyUse, RememberedRefusal>>,
    turns: Mutex<LruCache<KeyUse, Arc<tokio::sync::Mutex<()>>>>,
}

struct RememberedRefusal {
    refused: Refused,
    at: Moment,
    minute: i64,
}

impl Memory {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            users: Mutex::new(LruCache::sparse(MAX_REMEMBERED)),
            refusals: Mutex::new(LruCache::sparse(MAX_REMEMBERED)),
            turns: Mutex::new(LruCache::sparse(MAX_REMEMBERED)),
        }
    }

    /// Returns the user of a key that was admitted and is still remembered.
    pub(super) fn user(&self, key_use: &KeyUse) -> Option<UserId> {
        lock(&self.users).get(key_use).copied()
    }

    /// Waits until no other request with a key that is not known to be good is being decided. The turn ends when the
    /// returned value is dropped. A key that is known to be good waits for nobody, and gets none.
    ///
    /// So of many requests with a bad key at the same time, one asks the table, and the others repeat its refusal.
    pub(super) async fn turn(&self, key_use: &KeyUse) -> Option<OwnedMutexGuard<()>> {
        if self.user(key_use).is_some() {
            return None;
        }
        let turn = Arc::clone(lock(&self.turns).get_or_insert(*key_use, Arc::default));
        let turn = turn.lock_owned().await;
        // The key may have been admitted while this request waited. Then those behind it need not wait either.
        self.user(key_use).is_none().then_some(turn)
    }

    /// Returns the refusal to repeat at `now`, if there is one.
    pub(super) fn refusal(&self, key_use: &KeyUse, now: Timestamp) -> Option<Refused> {
        let mut refusals = lock(&self.refusals);
        let remembered = refusals.get(key_use)?;
        if remembered.at.is_within(REPEAT_REFUSAL_FOR, &*self.clock) { remembered.repeated(now) } else { None }
    }

    /// Remembers a verdict that the table gave at `now`.
    pub(super) fn remember(&self, key_use: KeyUse, now: Timestamp, verdict: &Result<Grant, Refused>) {
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
