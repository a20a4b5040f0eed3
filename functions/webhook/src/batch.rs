//! Handles a batch of messages: reads all their accounts in one call, then handles the endpoints concurrently.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use platform::store::StoreError;
use types::ids::{EndpointId, UserId};
use webhooks::QueueMessage;
use webhooks::delivery::{Carried, Dispatch};
use webhooks::endpoint::{Endpoints, WebhookEndpoint};

use crate::Webhook;
use crate::outcome::DispatchOutcome;
use crate::received::{Received, is_repeated};

/// The endpoints of a batch. An endpoint that cannot be read is an error, because it was not removed.
pub(crate) type Found = HashMap<EndpointId, Result<WebhookEndpoint, StoreError>>;

impl Webhook {
    /// Handles every message of a batch. Returns their outcomes in the same order, and those of the deliveries that were
    /// drained.
    pub(crate) async fn handle(&self, records: &[SqsMessage]) -> (Vec<DispatchOutcome>, Vec<DispatchOutcome>) {
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
        let drained =
            join_all(drains.into_iter().map(|(number, call)| async move { (number, self.drain(call).await) }));
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
                Some(Ok(endpoint)) if !endpoint.is_on() && message.carried.is_some() => {
                    off.entry(account_id).or_default().push((message, endpoint));
                }
                _ => messages.entry(endpoint_id).or_default().push(message),
            }
        }
        let of_endpoints =
            messages.into_iter().map(|(id, messages)| self.handle_endpoint(endpoints.get(&id), messages));
        let of_accounts = off.into_iter().map(|(account, messages)| self.hold_new(account, messages).boxed());
        join_all(of_endpoints.chain(of_accounts)).await.concat()
    }

    /// Returns the endpoints of these accounts.
    pub(crate) async fn endpoints(&self, accounts: &BTreeSet<UserId>) -> Result<Found, StoreError> {
        Ok(self.store.accounts(accounts).await?.into_values().flat_map(by_id).collect())
    }

    /// Handles all messages for one endpoint: makes attempts if it is on, holds the deliveries if it is off, and ends
    /// them if it was removed. If it cannot be read, its messages become dead letters, and its deliveries stay pending.
    fn handle_endpoint<'a>(
        &'a self,
        endpoint: Option<&'a Result<WebhookEndpoint, StoreError>>,
        messages: Vec<Received>,
    ) -> BoxFuture<'a, Vec<(usize, DispatchOutcome)>> {
        match endpoint {
            Some(Ok(endpoint)) if endpoint.is_on() => self.attend(endpoint, messages).boxed(),
            // One after the other, because each transaction reads the account's row, and would be in the way of the
            // others.
            _ => stream::iter(messages)
                .then(move |message| async move {
                    let done = match endpoint {
                        Some(Ok(endpoint)) => self.hold(&message, endpoint).await,
                        Some(Err(error)) => Err(error.clone()),
                        None => self.end(&message).await,
                    };
                    (message.number, self.or_later(&message, done).await)
                })
                .collect()
                .boxed(),
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
