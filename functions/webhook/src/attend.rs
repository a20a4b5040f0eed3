//! Makes a batch's attempts to one endpoint, a few at a time.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use webhooks::delivery::Lane;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::share::Crowding;

use crate::Webhook;
use crate::attempt::SLOW_AFTER;
use crate::outcome::DispatchOutcome;
use crate::places::AccountTurn;
use crate::received::Received;

/// How many attempts to one endpoint run at the same time. The others wait until one of these ends, which is soon if
/// the receiver is fast. Messages that still wait when [`SLOW_AFTER`] has passed leave.
const MAX_IN_FLIGHT: usize = 4;

impl Webhook {
    /// Makes the attempts that messages call for, as far as the endpoint's account may make them now. Attempts that need
    /// a place are made in the slow lane alone.
    pub(crate) async fn attend(
        &self,
        lane: Lane,
        turn: &AccountTurn,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        if endpoint.needs_no_place(self.clock.now()) {
            self.attempt_all(lane, endpoint, messages).await
        } else if lane == Lane::Slow {
            self.attempt_in_place(turn, endpoint, messages).boxed().await
        } else {
            self.forward(Lane::Slow, &messages).await
        }
    }

    /// Makes attempts to an endpoint that responds promptly.
    pub(crate) async fn attempt_all(
        &self,
        lane: Lane,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        let mut waiting = messages.into_iter();
        let mut under_way = FuturesUnordered::<BoxFuture<'_, Vec<(usize, DispatchOutcome)>>>::new();
        under_way.extend(waiting.by_ref().take(MAX_IN_FLIGHT).map(|message| self.attempt_one(message, endpoint)));
        let mut patience = std::pin::pin!(tokio::time::sleep(SLOW_AFTER));
        let mut outcomes = Vec::with_capacity(waiting.len() + under_way.len());
        loop {
            tokio::select! {
                Some(done) = under_way.next() => {
                    outcomes.extend(done);
                    under_way.extend(waiting.next().map(|message| self.attempt_one(message, endpoint)));
                }
                () = &mut patience, if waiting.len() > 0 => {
                    let rest = waiting.by_ref().collect();
                    under_way.push(Box::pin(self.give_way(lane, rest)));
                }
                else => return outcomes,
            }
        }
    }

    fn attempt_one<'a>(
        &'a self,
        message: Received,
        endpoint: &'a WebhookEndpoint,
    ) -> BoxFuture<'a, Vec<(usize, DispatchOutcome)>> {
        Box::pin(async move {
            let made = self.attempt(&message, endpoint).await;
            vec![(message.number, self.or_later(&message, made.outcome).await)]
        })
    }

    /// Sends messages from the first lane to the retry lane. Messages that came from another leave for a while.
    async fn give_way(&self, lane: Lane, messages: Vec<Received>) -> Vec<(usize, DispatchOutcome)> {
        match lane {
            Lane::First => self.forward(Lane::Retry, &messages).await,
            Lane::Retry | Lane::Slow => self.leave(messages, Crowding::Slow).await,
        }
    }
}
