//! Calls the drains of accounts: first the row, then the queue. If the message cannot be sent, `sweep` sends it.

use crate::delivery::Token;
use crate::drain::LOST_SECONDS;
use crate::queues::{DrainCall, Queues};
use crate::schedule::Schedule;
use crate::store::WebhookStore;
use platform::store::StoreError;
use types::ids::UserId;
use types::timestamp::Timestamp;

/// Calls the drains of accounts.
#[derive(Clone)]
pub struct Drains {
    store: WebhookStore,
    queues: Queues,
    schedule: Schedule,
}

impl Drains {
    /// The queues must have the slow lane.
    pub const fn new(store: WebhookStore, queues: Queues, schedule: Schedule) -> Self {
        Self { store, queues, schedule }
    }

    /// Calls the drain of an account, because something waits that it must look at now.
    pub async fn call(&self, account_id: UserId, now: Timestamp) -> Result<(), StoreError> {
        let token = Token::random();
        if self.store.call_drain(account_id, token, self.lost_at(now), now).await? {
            self.send(DrainCall { account_id, token }).await;
        }
        Ok(())
    }

    /// Sends the message of a drain whose row has its token.
    pub async fn send(&self, call: DrainCall) {
        for unsent in self.queues.call_drains(&[(call, 0)]).await.into_iter().filter_map(Result::err) {
            tracing::warn!(account_id = %call.account_id, error = %unsent, "cannot call the drain");
        }
    }

    /// Returns the retry times of the stack.
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// Returns when a message that is sent now is taken for lost.
    pub fn lost_at(&self, now: Timestamp) -> Timestamp {
        now.plus_millis(i64::from(self.schedule.scaled(LOST_SECONDS)) * 1_000)
    }
}
