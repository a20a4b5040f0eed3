//! Messages that leave because their account has no place for them now.

use std::sync::Arc;

use futures_util::future::join_all;
use types::timestamp::Timestamp;
use webhooks::delivery::{Lane, Token, leave};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::share::{Crowding, reserved_seconds, turn_seconds};
use webhooks::store::Put;
use webhooks::{Call, Wait};

use crate::Webhook;
use crate::outcome::DispatchOutcome;
use crate::places::AccountTurn;
use crate::received::{Received, up_to_twice};

/// A message that leaves: the token under which its attempt goes on, and how it waits.
struct Leaving {
    received: Received,
    token: Token,
    wait: Wait,
    at: Timestamp,
}

impl Webhook {
    /// Lets messages leave because there is no place. If there are retries among them, first attempts leave the places
    /// to them for a while.
    pub(crate) async fn leave_without_place(
        &self,
        turn: &AccountTurn,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        let now = self.clock.now();
        let after = |seconds| now.plus_millis(i64::from(self.schedule.scaled(seconds)) * 1_000);
        let retries = messages.iter().filter(|message| message.dispatch.is_retry());
        let longest = retries.map(|message| reserved_seconds(&message.dispatch)).max();
        if let Some((_, kept)) = longest.filter(|(needed, _)| !turn.share.is_reserved(after(*needed))) {
            let reserved = self.store.reserve_places(endpoint.account_id, endpoint.id, after(kept)).await;
            if let Err(error) = reserved {
                tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot keep the places for retries");
            }
        }
        self.leave(messages, turn.crowding).await
    }

    /// Puts attempts off. If an attempt is due again soon, a message of the slow lane brings it back, and goes on carrying
    /// its delivery if it did. Otherwise a sweep does. A stored delivery gets the time at which it is due.
    pub(crate) async fn leave(&self, messages: Vec<Received>, crowding: Crowding) -> Vec<(usize, DispatchOutcome)> {
        let leaving: Vec<Leaving> = messages.into_iter().map(|received| self.leaving(received, crowding)).collect();
        let calls: Vec<Call> = leaving.iter().filter_map(Leaving::call).collect();
        let mut sent = self.queues.call(Lane::Slow, &calls).await.into_iter();
        let outcomes = leaving.iter().map(|one| {
            let sent = if one.call().is_some() { sent.next().unwrap_or(Ok(())) } else { Ok(()) };
            async move {
                let outcome = match sent {
                    Ok(()) => self.or_later(&one.received, self.left(one).await).await,
                    Err(unsent) => DispatchOutcome::uncopied(&unsent),
                };
                (one.received.number, outcome)
            }
        });
        join_all(outcomes).await
    }

    fn leaving(&self, received: Received, crowding: Crowding) -> Leaving {
        let at = self.clock.now();
        let seconds = self.schedule.scaled(up_to_twice(turn_seconds(&received.dispatch, crowding)));
        Leaving { received, token: Token::random(), wait: self.schedule.wait(seconds, at), at }
    }

    /// Records that a message has left. If its delivery has moved on, or somebody is making the attempt, there is
    /// nothing to record. But whoever claimed the delivery may have died without giving it a wake-up, so it gets one
    /// before the last message goes that carries it.
    async fn left(&self, leaving: &Leaving) -> Result<DispatchOutcome, platform::store::StoreError> {
        let Leaving { received, token, wait, at } = leaving;
        if let Some(carried) = &received.carried {
            if matches!(wait, Wait::Delayed { .. }) {
                return Ok(DispatchOutcome::Forwarded);
            }
            let delivery = carried.waiting(*token, *wait, self.schedule, *at);
            if self.store.put_delivery(&delivery).await? == Put::New {
                return Ok(DispatchOutcome::Forwarded);
            }
        }
        let step = leave(&received.dispatch, *token, *wait, self.schedule, *at);
        if self.store.settle(received.dispatch.delivery_id, &step).await? {
            return Ok(DispatchOutcome::Forwarded);
        }
        if let Some(carried) = &received.carried {
            self.store(carried).await?;
        }
        Ok(DispatchOutcome::Void)
    }
}

impl Leaving {
    /// Returns the message that brings the attempt back, unless a sweep does.
    fn call(&self) -> Option<Call> {
        let Wait::Delayed { seconds: delay_seconds } = self.wait else { return None };
        Some(match &self.received.carried {
            None => Call::new(self.received.dispatch.after_leaving(self.token), delay_seconds),
            Some(carried) => Call::carrying(Arc::new(carried.after_leaving()), delay_seconds),
        })
    }
}
