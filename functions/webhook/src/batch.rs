//! Handles a batch of messages: reads all their accounts in one call, then handles the endpoints concurrently.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use platform::store::StoreError;
use types::ids::{EndpointId, UserId};
use types::timestamp::Timestamp;
use webhooks::QueueMessage;
use webhooks::delivery::{Carried, Dispatch, Lane};
use webhooks::endpoint::{Endpoints, WebhookAccount, WebhookEndpoint};

use crate::Webhook;
use crate::outcome::DispatchOutcome;
use crate::places::AccountTurn;
use crate::received::{Received, is_repeated};

/// The endpoints of a batch. An endpoint that cannot be read is an error, because it was not removed.
type Found = HashMap<EndpointId, Result<WebhookEndpoint, StoreError>>;

impl Webhook {
    /// Handles every message of a batch. Returns their outcomes in the same order.
    pub(crate) async fn handle(&self, records: &[SqsMessage]) -> Vec<DispatchOutcome> {
        let mut outcomes = vec![DispatchOutcome::Failed("it was not handled".to_owned()); records.len()];
        let (mut received, mut again, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        for (number, record) in records.iter().enumerate() {
            match read(record) {
                Ok(QueueMessage::Attempt(dispatch)) => received.push(Received { number, dispatch, carried: None }),
                Ok(QueueMessage::First(carried)) if is_repeated(record) => again.push((number, carried)),
                Ok(QueueMessage::First(carried)) => {
                    received.push(Received { number, dispatch: carried.dispatch(), carried: Some(carried) });
                }
                Ok(QueueMessage::Probe { sent_at }) => probes.push((number, self.lane(record), sent_at)),
                Err(error) => outcomes[number] = DispatchOutcome::Defective(error),
            }
        }
        for stored in join_all(again.into_iter().map(|(number, carried)| self.stored_again(number, carried))).await {
            match stored {
                Ok(message) => received.push(message),
                Err((number, outcome)) => outcomes[number] = outcome,
            }
        }
        // All messages of a batch come from the same queue.
        let lane = records.first().map_or(Lane::Retry, |record| self.lane(record));
        let noted = join_all(probes.into_iter().map(|(number, lane, sent_at)| self.note(number, lane, sent_at)));
        let (handled, noted) = tokio::join!(self.handle_attempts(lane, received).boxed(), noted);
        for (number, outcome) in handled.into_iter().chain(noted) {
            outcomes[number] = outcome;
        }
        outcomes
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

    async fn note(&self, number: usize, lane: Lane, sent_at: Timestamp) -> (usize, DispatchOutcome) {
        let noted = self.store.probed(lane, sent_at).await;
        (number, noted.map_or_else(|error| DispatchOutcome::stopped_by(&error), |()| DispatchOutcome::Probed))
    }

    async fn handle_attempts(&self, lane: Lane, received: Vec<Received>) -> Vec<(usize, DispatchOutcome)> {
        let accounts: BTreeSet<UserId> = received.iter().map(|message| message.dispatch.account_id).collect();
        let accounts = match self.store.accounts(&accounts).await {
            Ok(accounts) => accounts,
            Err(error) => {
                let later = received.iter().map(|message| {
                    let error = error.clone();
                    async move { (message.number, self.or_later(message, Err(error)).await) }
                });
                return join_all(later).await;
            }
        };
        let now = self.clock.now();
        let mut turns: HashMap<UserId, AccountTurn> =
            accounts.iter().map(|(id, account)| (*id, AccountTurn::new(account, now))).collect();
        let endpoints: Found = accounts.into_values().flat_map(by_id).collect();
        let mut messages = BTreeMap::<EndpointId, Vec<Received>>::new();
        let mut off = BTreeMap::<UserId, Vec<(Received, &WebhookEndpoint)>>::new();
        for message in received {
            let Dispatch { account_id, endpoint_id, .. } = message.dispatch;
            match endpoints.get(&endpoint_id) {
                Some(Ok(endpoint)) if !endpoint.is_on() && message.carried.is_some() => {
                    off.entry(account_id).or_default().push((message, endpoint));
                }
                _ => {
                    turns.entry(account_id).or_insert_with(|| AccountTurn::new(&WebhookAccount::default(), now));
                    messages.entry(endpoint_id).or_default().push(message);
                }
            }
        }
        let turn_of =
            |messages: &[Received]| messages.first().and_then(|message| turns.get(&message.dispatch.account_id));
        let mut handled: Vec<BoxFuture<'_, Vec<(usize, DispatchOutcome)>>> = Vec::with_capacity(messages.len());
        for (id, messages) in messages {
            if let Some(turn) = turn_of(&messages) {
                handled.push(self.handle_endpoint(lane, turn, endpoints.get(&id), messages));
            }
        }
        for (account, messages) in off {
            handled.push(self.hold_new(account, messages).boxed());
        }
        join_all(handled).await.concat()
    }

    /// Handles all messages for one endpoint: makes attempts if it is on, holds the deliveries if it is off, and ends
    /// them if it was removed. If it cannot be read, its messages become dead letters, and its deliveries stay pending.
    fn handle_endpoint<'a>(
        &'a self,
        lane: Lane,
        turn: &'a AccountTurn,
        endpoint: Option<&'a Result<WebhookEndpoint, StoreError>>,
        messages: Vec<Received>,
    ) -> BoxFuture<'a, Vec<(usize, DispatchOutcome)>> {
        match endpoint {
            Some(Ok(endpoint)) if endpoint.is_on() => self.attend(lane, turn, endpoint, messages).boxed(),
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

    fn lane(&self, record: &SqsMessage) -> Lane {
        let arn = record.event_source_arn.as_deref().unwrap_or_default();
        self.queues.lane_at(arn).unwrap_or(Lane::Retry)
    }
}

fn by_id(account: WebhookAccount) -> Found {
    let Endpoints { readable, unreadable } = account.endpoints;
    let readable = readable.into_iter().map(|endpoint| (endpoint.id, Ok(endpoint)));
    let unreadable = unreadable.into_iter().map(|endpoint| (endpoint.id, Err(endpoint.unreadable.into())));
    readable.chain(unreadable).collect()
}

fn read(record: &SqsMessage) -> Result<QueueMessage, String> {
    QueueMessage::parse(record.body.as_deref().unwrap_or_default()).map_err(|error| error.to_string())
}
