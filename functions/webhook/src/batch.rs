//! Handles a batch of messages: reads all their endpoints in one call, then handles the endpoints concurrently.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use platform::backoff::equal_jitter_seconds;
use platform::store::StoreError;
use types::ids::{EndpointId, UserId};
use webhooks::delivery::{Dispatch, Lane};
use webhooks::endpoint::{Endpoints, WebhookEndpoint};
use webhooks::{Call, QueueMessage};

use crate::Webhook;
use crate::outcome::DispatchOutcome;

/// The delay of a message if the store or the keyring is unavailable, in seconds: a random time from this to twice
/// this.
const AWAY_SECONDS: u32 = 10;

/// The endpoints of a batch. An endpoint that cannot be read is an error, because it was not removed.
type Found = HashMap<EndpointId, Result<WebhookEndpoint, StoreError>>;

/// A message that calls for an attempt, with its place in the batch.
pub(crate) type PlacedDispatch = (usize, Dispatch);

impl Webhook {
    /// Handles every message of a batch. Returns their outcomes in the same order.
    pub(crate) async fn handle(&self, records: &[SqsMessage]) -> Vec<DispatchOutcome> {
        let mut outcomes = vec![DispatchOutcome::Failed("it was not handled".to_owned()); records.len()];
        let mut calls = BTreeMap::<EndpointId, Vec<PlacedDispatch>>::new();
        let mut probes = Vec::new();
        for (place, record) in records.iter().enumerate() {
            match read(record) {
                Ok(QueueMessage::Attempt(dispatch)) => {
                    calls.entry(dispatch.endpoint_id).or_default().push((place, dispatch));
                }
                Ok(QueueMessage::Probe { sent_at }) => probes.push(async move {
                    let noted = self.store.probed(self.lane(record), sent_at).await;
                    (
                        place,
                        noted.map_or_else(|error| DispatchOutcome::stopped_by(&error), |()| DispatchOutcome::Probed),
                    )
                }),
                Err(error) => outcomes[place] = DispatchOutcome::Failed(error),
            }
        }
        // All messages of a batch come from the same queue.
        let lane = records.first().map_or(Lane::Retry, |record| self.lane(record));
        let (answered, noted) = tokio::join!(self.answer(lane, calls).boxed(), join_all(probes));
        for (place, outcome) in answered.into_iter().chain(noted) {
            outcomes[place] = outcome;
        }
        outcomes
    }

    async fn answer(
        &self,
        lane: Lane,
        calls: BTreeMap<EndpointId, Vec<PlacedDispatch>>,
    ) -> Vec<(usize, DispatchOutcome)> {
        let accounts: BTreeSet<UserId> = calls.values().flatten().map(|(_, dispatch)| dispatch.account_id).collect();
        let endpoints: Found = match self.store.endpoints_of(&accounts).await {
            Ok(found) => found.into_values().flat_map(by_id).collect(),
            Err(error) => {
                let put_off = calls.into_values().flatten().map(|(place, dispatch)| {
                    let error = error.clone();
                    async move { (place, self.or_later(dispatch, Err(error)).await) }
                });
                return join_all(put_off).await;
            }
        };
        let answers = calls.into_iter().map(|(id, calls)| self.answer_all(lane, endpoints.get(&id), calls));
        stream::iter(answers).buffer_unordered(usize::MAX).collect::<Vec<_>>().await.concat()
    }

    /// Handles all messages for one endpoint: makes attempts if it is on, holds the deliveries if it is off, and ends
    /// them if it was removed. If it cannot be read, its messages fail.
    fn answer_all<'a>(
        &'a self,
        lane: Lane,
        endpoint: Option<&'a Result<WebhookEndpoint, StoreError>>,
        calls: Vec<PlacedDispatch>,
    ) -> BoxFuture<'a, Vec<(usize, DispatchOutcome)>> {
        match endpoint {
            Some(Ok(endpoint)) if endpoint.is_on() => self.attend(lane, endpoint, calls).boxed(),
            _ => join_all(calls.into_iter().map(move |(place, dispatch)| async move {
                let done = match endpoint {
                    Some(Ok(endpoint)) => self.hold(&dispatch, endpoint).await,
                    Some(Err(error)) => Err(error.clone()),
                    None => self.end(&dispatch).await,
                };
                (place, self.or_later(dispatch, done).await)
            }))
            .boxed(),
        }
    }

    /// Turns a result into an outcome. If the store was busy or unavailable, a copy of the message is sent for later,
    /// so that an outage of any length uses up no message's receives.
    pub(crate) async fn or_later(
        &self,
        dispatch: Dispatch,
        done: Result<DispatchOutcome, StoreError>,
    ) -> DispatchOutcome {
        match done {
            Ok(outcome) => outcome,
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => {
                self.postpone(dispatch, up_to_twice(AWAY_SECONDS), error.to_string()).await
            }
            Err(error) => DispatchOutcome::stopped_by(&error),
        }
    }

    /// Sends a copy of a message to the retry queue, with a delay.
    pub(crate) async fn postpone(&self, dispatch: Dispatch, delay_seconds: u32, why: String) -> DispatchOutcome {
        match self.queues.call_once(Lane::Retry, Call { dispatch, delay_seconds }).await {
            Ok(()) => DispatchOutcome::Postponed(why),
            Err(unsent) => DispatchOutcome::uncopied(&unsent),
        }
    }

    fn lane(&self, record: &SqsMessage) -> Lane {
        let arn = record.event_source_arn.as_deref().unwrap_or_default();
        if arn.rsplit(':').next() == Some(&self.first_queue) { Lane::First } else { Lane::Retry }
    }
}

fn by_id(endpoints: Endpoints) -> Found {
    let Endpoints { readable, unreadable } = endpoints;
    let readable = readable.into_iter().map(|endpoint| (endpoint.id, Ok(endpoint)));
    let unreadable = unreadable.into_iter().map(|endpoint| (endpoint.id, Err(endpoint.unreadable.into())));
    readable.chain(unreadable).collect()
}

fn read(record: &SqsMessage) -> Result<QueueMessage, String> {
    QueueMessage::parse(record.body.as_deref().unwrap_or_default()).map_err(|error| error.to_string())
}

/// Returns a random number of seconds, from `seconds` to twice as many, so that messages that were postponed together
/// do not come back together.
pub(crate) fn up_to_twice(seconds: u32) -> u32 {
    equal_jitter_seconds(2 * seconds)
}
