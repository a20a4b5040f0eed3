//! Handles a batch of messages: reads all their accounts in one call, then handles the endpoints concurrently.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsMessage};
use common::ids::{EndpointId, UserId};
use common::queues::{MessageCopy, send_copies};
use common::runtime::catch_panic;
use common::store::StoreError;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt, stream};
use webhooks::QueueMessage;
use webhooks::delivery::{Carried, Dispatch};
use webhooks::endpoint::{Endpoints, WebhookEndpoint};

use crate::Webhook;
use crate::messages::{Received, is_repeated};
use crate::outcome::{DispatchOutcome, log};

/// How many attempts to one endpoint run at the same time. The others wait until one of these ends, which is soon if
/// the receiver is fast.
const MAX_IN_FLIGHT: usize = 4;
/// Attempts of a batch that have not begun after this time wait for the drain of their account. So an endpoint does not
/// hold a worker up for much longer than one of its attempts takes.
const BEGIN_WITHIN: Duration = Duration::from_secs(1);

/// The endpoints of a batch. An endpoint that cannot be read is an error, because it was not removed.
pub(crate) type Found = HashMap<EndpointId, Result<WebhookEndpoint, StoreError>>;

impl Webhook {
    /// Handles every message of a batch.
    pub(crate) async fn handle(&self, records: &[SqsMessage]) -> SqsBatchResponse {
        let (mut outcomes, drained) = self.outcomes(records).await;
        self.bury_defective(records, &mut outcomes).await;
        let waits = std::mem::take(&mut *self.waits.lock().unwrap_or_else(PoisonError::into_inner));
        let keyless = self.keyless.swap(0, Ordering::Relaxed);
        log(&self.meter, records, &outcomes, &drained, &waits, keyless);
        let failed = records.iter().zip(&outcomes).filter(|(_, outcome)| matches!(outcome, DispatchOutcome::Failed(_)));
        let mut response = SqsBatchResponse::default();
        for (record, _) in failed {
            // SQS always gives an id. Without one, Lambda would take the whole batch as failed.
            response.add_failure(record.message_id.clone().unwrap_or_default());
        }
        response
    }

    /// Returns the outcomes of the messages in the same order, and those of the deliveries that were drained.
    async fn outcomes(&self, records: &[SqsMessage]) -> (Vec<DispatchOutcome>, Vec<DispatchOutcome>) {
        let mut outcomes = vec![DispatchOutcome::Failed("it was not handled".to_owned()); records.len()];
        let (mut received, mut again, mut drains) = (Vec::new(), Vec::new(), Vec::new());
        for (number, record) in records.iter().enumerate() {
            match read(record) {
                Ok(QueueMessage::Attempt(dispatch)) => received.push(Received { number, dispatch, carried: None }),
                Ok(QueueMessage::First(carried)) if is_repeated(record) => again.push((number, carried)),
                Ok(QueueMessage::First(carried)) => {
                    received.push(Received { number, dispatch: carried.dispatch(), carried: Some(carried) });
                }
                Ok(QueueMessage::Drain(call)) => drains.push((number, call)),
                Err(error) => outcomes[number] = DispatchOutcome::Defective(error),
            }
        }
        for stored in join_all(again.into_iter().map(|(number, carried)| self.stored_again(number, carried))).await {
            match stored {
                Ok(message) => received.push(message),
                Err((number, outcome)) => outcomes[number] = outcome,
            }
        }
        let drained = drains.into_iter().map(|(number, call)| async move {
            let drained = catch_panic(self.drain(call).boxed()).await;
            (number, drained.unwrap_or_else(|| (DispatchOutcome::panicked(), Vec::new())))
        });
        let drained = join_all(drained);
        let (handled, drained) = tokio::join!(self.handle_attempts(received).boxed(), drained.boxed());
        for (number, outcome) in handled {
            outcomes[number] = outcome;
        }
        let mut of_drains = Vec::new();
        for (number, (outcome, drained)) in drained {
            outcomes[number] = outcome;
            of_drains.extend(drained);
        }
        (outcomes, of_drains)
    }

    /// Stores a delivery whose message has come before. From then on the message is like any other.
    async fn stored_again(&self, number: usize, carried: Arc<Carried>) -> Result<Received, (usize, DispatchOutcome)> {
        let dispatch: Dispatch = carried.dispatch();
        match self.store(&carried).await {
            Ok(()) => Ok(Received { number, dispatch, carried: None }),
            Err(error) => {
                let received = Received { number, dispatch, carried: Some(carried) };
                Err((number, self.or_later(&received, Err(error)).await))
            }
        }
    }

    async fn handle_attempts(&self, received: Vec<Received>) -> Vec<(usize, DispatchOutcome)> {
        let accounts: BTreeSet<UserId> = received.iter().map(|message| message.dispatch.account_id).collect();
        if accounts.is_empty() {
            return Vec::new();
        }
        let endpoints = match self.endpoints(&accounts).await {
            Ok(endpoints) => endpoints,
            Err(error) => {
                let later = received.iter().map(|message| {
                    let error = error.clone();
                    async move { (message.number, self.or_later(message, Err(error)).await) }
                });
                return join_all(later).await;
            }
        };
        let mut messages = BTreeMap::<EndpointId, Vec<Received>>::new();
        let mut off = BTreeMap::<UserId, Vec<(Received, &WebhookEndpoint)>>::new();
        for message in received {
            let Dispatch { account_id, endpoint_id, .. } = message.dispatch;
            match endpoints.get(&endpoint_id) {
                Some(Ok(endpoint)) if !endpoint.is_on() => {
                    off.entry(account_id).or_default().push((message, endpoint));
                }
                _ => messages.entry(endpoint_id).or_default().push(message),
            }
        }
        let of_endpoints =
            messages.into_iter().map(|(id, messages)| self.handle_endpoint(endpoints.get(&id), messages));
        let of_accounts = off.into_values().map(|messages| self.hold_all(messages).boxed());
        // What panics here is not handled, and the rest is.
        let walled = of_endpoints.chain(of_accounts).map(catch_panic);
        join_all(walled).await.into_iter().flatten().flatten().collect()
    }

    /// Returns the endpoints of these accounts.
    pub(crate) async fn endpoints(&self, accounts: &BTreeSet<UserId>) -> Result<Found, StoreError> {
        Ok(self.store.accounts(accounts).await?.into_values().flat_map(by_id).collect())
    }

    /// Handles all messages for one endpoint that is not off: makes attempts if it is on, and ends the deliveries if it was
    /// removed. If it cannot be read, its messages become dead letters, and its deliveries stay pending.
    fn handle_endpoint<'a>(
        &'a self,
        endpoint: Option<&'a Result<WebhookEndpoint, StoreError>>,
        messages: Vec<Received>,
    ) -> BoxFuture<'a, Vec<(usize, DispatchOutcome)>> {
        match endpoint {
            Some(Ok(endpoint)) => self.attend(endpoint, messages).boxed(),
            _ => stream::iter(messages)
                .then(move |message| async move {
                    let done = match endpoint {
                        Some(Err(error)) => Err(error.clone()),
                        _ => self.end(&message).await,
                    };
                    (message.number, self.or_later(&message, done).await)
                })
                .collect()
                .boxed(),
        }
    }

    /// Makes the attempts that messages call for, unless they have to wait for the drain of their account.
    pub(crate) async fn attend(
        &self,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        // The drain also decides about what was sent again before the URL got another host.
        let waits = |message: &Received| {
            !endpoint.is_prompt || (message.dispatch.round > 1 && endpoint.host_changed_at.is_some())
        };
        let (to_wait, messages): (Vec<_>, Vec<_>) = messages.into_iter().partition(waits);
        let mut waiting = messages.into_iter();
        let mut under_way = FuturesUnordered::<BoxFuture<'_, Vec<(usize, DispatchOutcome)>>>::new();
        under_way.extend(waiting.by_ref().take(MAX_IN_FLIGHT).map(|message| self.attempt_one(message, endpoint)));
        let mut patience = std::pin::pin!(tokio::time::sleep(BEGIN_WITHIN));
        let mut outcomes = self.wait(endpoint, to_wait).await;
        loop {
            tokio::select! {
                biased;
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
            // A panic must not break off the attempts beside it.
            let attempt = async {
                let done = self.attempt(&message, endpoint).await;
                self.or_later(&message, done).await
            };
            let done = catch_panic(attempt.boxed()).await;
            vec![(message.number, done.unwrap_or_else(DispatchOutcome::panicked))]
        })
    }

    /// Sends a copy of each message that met a defect to the dead-letter queue. If it is not certain that a copy was
    /// sent, its message has failed and stays in its queue.
    ///
    /// The delivery itself stays as it is. If it is pending, the drain of its account makes another attempt.
    async fn bury_defective(&self, records: &[SqsMessage], outcomes: &mut [DispatchOutcome]) {
        let (mut copies, mut unsent) = (Vec::new(), Vec::new());
        for (number, (record, outcome)) in records.iter().zip(outcomes.iter()).enumerate() {
            let DispatchOutcome::Defective(defect) = outcome else { continue };
            match MessageCopy::defective(number, record.body.clone(), defect) {
                Ok(copy) => copies.push(copy),
                Err(error) => unsent.push((number, error.to_string())),
            }
        }
        unsent.extend(send_copies(&self.sqs, &self.dead_queue, copies).await);
        for (number, error) in unsent {
            outcomes[number] = DispatchOutcome::Failed(format!("its copy cannot be sent: {error}"));
        }
    }
}

fn by_id(Endpoints { readable, unreadable }: Endpoints) -> Found {
    let readable = readable.into_iter().map(|endpoint| (endpoint.id, Ok(endpoint)));
    let unreadable = unreadable.into_iter().map(|endpoint| (endpoint.id, Err(endpoint.unreadable.into())));
    readable.chain(unreadable).collect()
}

fn read(record: &SqsMessage) -> Result<QueueMessage, String> {
    QueueMessage::parse(record.body.as_deref().unwrap_or_default()).map_err(|error| error.to_string())
}
