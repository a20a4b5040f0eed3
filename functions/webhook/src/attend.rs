//! Makes a batch's attempts to one endpoint, a few at a time.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use webhooks::Call;
use webhooks::delivery::Lane;
use webhooks::endpoint::WebhookEndpoint;

use crate::Webhook;
use crate::attempt::SLOW_AFTER;
use crate::batch::{PlacedDispatch, up_to_twice};
use crate::outcome::DispatchOutcome;

/// How many attempts to one endpoint run at the same time. The others wait until one of these ends, which is soon if
/// the receiver is fast. Messages that still wait when [`SLOW_AFTER`] has passed go to the slow lane.
const MAX_IN_FLIGHT: usize = 4;
/// The delay of a message that was on the slow lane already, in seconds: a random time from this to twice this.
const NO_ROOM_SECONDS: u32 = 15;

impl Webhook {
    /// Makes the attempts that messages call for. If the endpoint is slow, messages on the other lanes go to the slow
    /// lane instead.
    pub(crate) async fn attend(
        &self,
        lane: Lane,
        endpoint: &WebhookEndpoint,
        calls: Vec<PlacedDispatch>,
    ) -> Vec<(usize, DispatchOutcome)> {
        if lane != Lane::Slow && endpoint.is_slow(self.clock.now()) {
            return self.leave(lane, calls).await;
        }
        let mut waiting = calls.into_iter();
        let mut under_way = FuturesUnordered::<BoxFuture<'_, Vec<(usize, DispatchOutcome)>>>::new();
        under_way.extend(waiting.by_ref().take(MAX_IN_FLIGHT).map(|call| self.attempt_one(call, endpoint)));
        let mut patience = std::pin::pin!(tokio::time::sleep(SLOW_AFTER));
        let mut outcomes = Vec::with_capacity(waiting.len() + under_way.len());
        loop {
            tokio::select! {
                Some(done) = under_way.next() => {
                    outcomes.extend(done);
                    under_way.extend(waiting.next().map(|call| self.attempt_one(call, endpoint)));
                }
                () = &mut patience, if waiting.len() > 0 => {
                    let rest = waiting.by_ref().collect();
                    under_way.push(Box::pin(self.leave(lane, rest)));
                }
                else => return outcomes,
            }
        }
    }

    fn attempt_one<'a>(
        &'a self,
        call: PlacedDispatch,
        endpoint: &'a WebhookEndpoint,
    ) -> BoxFuture<'a, Vec<(usize, DispatchOutcome)>> {
        let (place, dispatch) = call;
        Box::pin(async move {
            let done = self.attempt(&dispatch, endpoint).await;
            vec![(place, self.or_later(dispatch, done).await)]
        })
    }

    /// Sends messages to the slow lane. Messages that came from it return to it with a delay.
    async fn leave(&self, lane: Lane, messages: Vec<PlacedDispatch>) -> Vec<(usize, DispatchOutcome)> {
        let delay_seconds = || match lane {
            Lane::First | Lane::Retry => 0,
            Lane::Slow => up_to_twice(NO_ROOM_SECONDS),
        };
        let calls = messages.iter().map(|(_, dispatch)| Call { dispatch: *dispatch, delay_seconds: delay_seconds() });
        let sent = self.queues.call(Lane::Slow, &calls.collect::<Vec<_>>()).await;
        let outcomes = messages.iter().zip(sent).map(|((place, _), sent)| {
            let outcome = match sent {
                Ok(()) => DispatchOutcome::Forwarded,
                Err(unsent) => DispatchOutcome::uncopied(&unsent),
            };
            (*place, outcome)
        });
        outcomes.collect()
    }
}
