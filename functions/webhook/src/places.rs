//! Attempts to endpoints that are slow, or not known to be prompt. Each needs a place in its account's share, and is made
//! in the slow lane.

use platform::store::StoreError;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use types::ids::EndpointId;
use types::timestamp::Timestamp;
use webhooks::delivery::{Lane, Token};
use webhooks::endpoint::{WebhookAccount, WebhookEndpoint};
use webhooks::share::{Crowding, PLACES, Place, Share};

use crate::Webhook;
use crate::attempt::SLOW_AFTER;
use crate::outcome::DispatchOutcome;
use crate::received::Received;

/// An account's turn in a batch.
pub(crate) struct AccountTurn {
    /// The share as it was when the batch was received.
    pub(crate) share: Share,
    /// Why there may be no place.
    pub(crate) crowding: Crowding,
    /// Lets no more of the account's endpoints try for a place than there are, so that they take turns within the
    /// batch.
    tries: Semaphore,
}

impl AccountTurn {
    pub(crate) fn new(account: &WebhookAccount, now: Timestamp) -> Self {
        let is_slow = account.endpoints.readable.iter().any(|endpoint| endpoint.is_slow(now));
        let crowding = if is_slow { Crowding::Slow } else { Crowding::Unknown };
        Self { share: account.share.clone(), crowding, tries: Semaphore::const_new(PLACES) }
    }
}

/// A place that an attempt has taken.
#[derive(Clone, Copy)]
struct Taken {
    number: usize,
    place: Place,
}

impl Webhook {
    /// Takes a place and makes attempts one after the other. If the endpoint proves prompt, the place is left, and the
    /// remaining attempts are made as for any prompt endpoint. Messages that still wait after a second leave.
    pub(crate) async fn attempt_in_place(
        &self,
        turn: &AccountTurn,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        let messages = retries_first(messages);
        let patience = Instant::now() + SLOW_AFTER;
        let Ok(Ok(_try)) = timeout_at(patience, turn.tries.acquire()).await else {
            return self.leave_without_place(turn, endpoint, messages).await;
        };
        let is_retry = messages.first().is_some_and(|message| message.dispatch.is_retry());
        let taken = match self.take_place(&turn.share, endpoint, is_retry).await {
            Ok(Some(taken)) => taken,
            Ok(None) => return self.leave_without_place(turn, endpoint, messages).await,
            Err(error) => return self.all_later(&messages, &error).await,
        };
        let mut waiting = messages.into_iter();
        let (mut outcomes, mut is_proven) = (Vec::new(), false);
        while !is_proven && let Some(message) = waiting.next() {
            let mut attempt = std::pin::pin!(self.attempt(&message, endpoint));
            let made = if let Ok(made) = timeout_at(patience, &mut attempt).await {
                made
            } else {
                let (made, left) = tokio::join!(attempt, self.leave(waiting.by_ref().collect(), Crowding::Slow));
                outcomes.extend(left);
                made
            };
            is_proven = made.is_prompt && !endpoint.is_slow(self.clock.now());
            outcomes.push((message.number, self.or_later(&message, made.outcome).await));
        }
        self.leave_place(endpoint, &taken, is_proven).await;
        outcomes.extend(self.attempt_all(Lane::Slow, endpoint, waiting.collect()).await);
        outcomes
    }

    /// Takes one of the places that look free.
    async fn take_place(
        &self,
        share: &Share,
        endpoint: &WebhookEndpoint,
        is_retry: bool,
    ) -> Result<Option<Taken>, StoreError> {
        let now = self.clock.now();
        let mut free = share.free(endpoint.id, is_retry, now);
        // Endpoints that try at the same time begin with different places.
        let first = first_number(endpoint.id, free.len());
        free.rotate_left(first);
        let place = Place::new(endpoint.id, Token::random(), now);
        for number in free {
            if self.store.take_place(endpoint.account_id, number, place, is_retry, now).await? {
                return Ok(Some(Taken { number, place }));
            }
        }
        Ok(None)
    }

    /// Leaves a place. After an error it is free again when its time is up.
    async fn leave_place(&self, endpoint: &WebhookEndpoint, taken: &Taken, is_proven: bool) {
        let (account, Taken { number, place }) = (endpoint.account_id, *taken);
        let left = if is_proven {
            self.store.leave_place_promptly(account, number, place).await
        } else {
            self.store.leave_place(account, number, place).await
        };
        if let Err(error) = left {
            tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot leave the place");
        }
    }

    async fn all_later(&self, messages: &[Received], error: &StoreError) -> Vec<(usize, DispatchOutcome)> {
        let later =
            messages.iter().map(|message| async { (message.number, self.or_later(message, Err(error.clone())).await) });
        futures_util::future::join_all(later).await
    }
}

fn retries_first(mut messages: Vec<Received>) -> Vec<Received> {
    messages.sort_by_key(|message| !message.dispatch.is_retry());
    messages
}

fn first_number(endpoint: EndpointId, places: usize) -> usize {
    usize::from(endpoint.uuid().as_bytes()[15]).checked_rem(places).unwrap_or_default()
}
