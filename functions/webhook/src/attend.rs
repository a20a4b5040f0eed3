//! Makes a batch's attempts to one endpoint, a few at a time.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use webhooks::endpoint::WebhookEndpoint;

use crate::Webhook;
use crate::outcome::DispatchOutcome;
use crate::received::Received;

/// How many attempts to one endpoint run at the same time. The others wait until one of these ends, which is soon if
/// the receiver is fast.
const MAX_IN_FLIGHT: usize = 4;
/// Attempts of a batch that have not begun after this time wait for the drain of their account. So an endpoint does not
/// hold a worker up for much longer than one of its attempts takes.
const PATIENCE: Duration = Duration::from_secs(1);

impl Webhook {
    /// Makes the attempts that messages call for, unless they have to wait for the drain of their account.
    pub(crate) async fn attend(
        &self,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        if !endpoint.is_prompt {
            return self.wait(endpoint, messages).await;
        }
        let mut waiting = messages.into_iter();
        let mut under_way = FuturesUnordered::<BoxFuture<'_, Vec<(usize, DispatchOutcome)>>>::new();
        under_way.extend(waiting.by_ref().take(MAX_IN_FLIGHT).map(|message| self.attempt_one(message, endpoint)));
        let mut patience = std::pin::pin!(tokio::time::sleep(PATIENCE));
        let mut outcomes = Vec::with_capacity(waiting.len() + under_way.len());
        loop {
            tokio::select! {
                Some(done) = under_way.next() => {
                    outcomes.extend(done);
                    under_way.extend(waiting.next().map(|message| self.attempt_one(message, endpoint)));
                }
                () = &mut patience, if waiting.len() > 0 => {
                    let rest = waiting.by_ref().collect();
                    under_way.push(Box::pin(self.wait(endpoint, rest)));
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
            let done = self.attempt(&message, endpoint).await;
            vec![(message.number, self.or_later(&message, done).await)]
        })
    }
}
