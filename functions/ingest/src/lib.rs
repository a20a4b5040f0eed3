//! The `ingest` function, triggered by the feed queue: applies batches of messages to the tables, and fans events out
//! to webhook endpoints.
//!
//! A message is acknowledged only after it is applied or a copy of it is sent. If the message is invalid, the store
//! takes what it calls for as invalid, or a row cannot be read, the copy goes to the dead-letter queue. If the store was
//! busy or unavailable, or an event's endpoint cannot be read, the copy goes back to the feed queue with a delay.
//!
//! After a crash between any two steps the message arrives again, perhaps together with its copy. That is harmless:
//! only a message with a newer version changes anything, and an event's deliveries have the same ids each time.

mod outcome;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use accounts::Accounts;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::Client;
use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::metrics::Meter;
use common::preflight;
use common::queues::{MessageCopy, UnsentCopy, isolating_panics, send_copies};
use common::resources::Queue;
use common::runtime::{Error, Service, Worker};
use feed::{Applier, Message, Stores, parse};
use futures_util::FutureExt;
use market::Market;
use tokio::sync::Mutex;
use webhooks::delivery::Lane;
use webhooks::store::WebhookStore;
use webhooks::{FanOut, Queues};

use crate::outcome::{MessageOutcome, postponed, refused};

/// How long applying a batch may take. Sending copies may take another 2.5 seconds, and the function has fifteen.
const APPLY_TIMEOUT: Duration = Duration::from_secs(6);

pub struct Ingest {
    /// Remembers the heads of the streams between batches.
    applier: Mutex<Applier>,
    fan_out: FanOut,
    outbox: Outbox,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

/// Builds the function from its environment.
pub fn worker(service: &Service<'_>) -> Result<Ingest, Missing> {
    let stores = Stores {
        market: Market::from_service(service, Patience::Request, preflight::get)?,
        accounts: Accounts::from_service(service, preflight::batch_get)?,
    };
    let (sqs, [feed, dead]) = common::queues::from_service(service, [Queue::Feed, Queue::FeedDead])?;
    Ok(Ingest {
        applier: Mutex::new(Applier::new(stores)),
        // Only events need webhooks. As long as these cannot be sent, they are postponed, and the data goes on.
        fan_out: service.optionally(fan_out)?,
        outbox: Outbox::new(sqs, feed, dead),
        clock: Arc::clone(&service.clock),
        meter: Arc::clone(&service.meter),
    })
}

fn fan_out(service: &Service<'_>) -> Result<FanOut, Missing> {
    let webhooks = WebhookStore::from_service(service, Patience::Request, preflight::batch_get)?;
    let (sqs, [first, retry]) = common::queues::from_service(service, [Queue::WebhooksFirst, Queue::WebhooksRetry])?;
    Ok(FanOut::new(webhooks, Queues::new(sqs, [(Lane::First, first), (Lane::Retry, retry)])))
}

impl Worker for Ingest {
    type Event = SqsEvent;
    type Response = SqsBatchResponse;

    async fn work(&self, event: SqsEvent) -> Result<SqsBatchResponse, Error> {
        Ok(isolating_panics(&self.meter, &event.records, |records| self.handle(records).boxed()).await)
    }

    async fn warm_up(&self) -> Result<(), String> {
        self.applier.lock().await.warm_up().await.map_err(|error| format!("heads of the streams: {error}"))
    }
}

impl Ingest {
    async fn handle(&self, records: &[SqsMessage]) -> SqsBatchResponse {
        let outcomes = self.apply(records).boxed().await;
        let outcomes = self.outbox.settle(records, outcomes).boxed().await;
        outcome::log(&self.meter, records, &outcomes);
        let failed = records.iter().zip(outcomes).filter(|(_, outcome)| matches!(outcome, MessageOutcome::Failed(_)));
        // A set, because SQS may deliver a message twice in a batch. SQS always gives an id. Without one, Lambda would
        // take the whole batch as failed.
        let failed: BTreeSet<String> =
            failed.map(|(record, _)| record.message_id.clone().unwrap_or_default()).collect();
        let mut response = SqsBatchResponse::default();
        response.set_failures(failed);
        response
    }

    async fn apply(&self, records: &[SqsMessage]) -> Vec<MessageOutcome> {
        let now = self.clock.now();
        let mut outcomes =
            vec![MessageOutcome::Postponed(format!("it was not applied within {APPLY_TIMEOUT:?}")); records.len()];
        let (mut messages, mut events) = (Vec::with_capacity(records.len()), Vec::new());
        for (index, record) in records.iter().enumerate() {
            match parse(record.body.as_deref().unwrap_or_default(), now) {
                Ok(Message::Event(event)) => events.push((index, event)),
                Ok(message) => messages.push((index, message)),
                Err(rejection) => outcomes[index] = MessageOutcome::Refused(rejection),
            }
        }
        let mut applier = self.applier.lock().await;
        // Some writes may have succeeded although the time ran out. Their messages are `Unchanged` the next time.
        let (written, fanned_out) = tokio::join!(
            tokio::time::timeout(APPLY_TIMEOUT, applier.apply(messages, &*self.clock)),
            tokio::time::timeout(APPLY_TIMEOUT, self.fan_out.apply(events, now)),
        );
        for (index, outcome) in written.into_iter().flatten() {
            outcomes[index] = outcome.into();
        }
        for (index, fanned_out) in fanned_out.into_iter().flatten() {
            outcomes[index] = MessageOutcome::from_fan_out(fanned_out);
        }
        outcomes
    }
}

/// Sends to the feed queue and to its dead-letter queue.
struct Outbox {
    client: Client,
    feed: String,
    dead: String,
}

impl Outbox {
    fn new(client: Client, feed: String, dead: String) -> Self {
        Self { client, feed, dead }
    }

    /// Sends a copy of each message that was refused or postponed or met a defect, and returns the messages' final
    /// outcomes. If it is not certain that a copy was sent, its message has failed and stays in its queue.
    async fn settle(&self, records: &[SqsMessage], mut outcomes: Vec<MessageOutcome>) -> Vec<MessageOutcome> {
        let (mut dead, mut later, mut unsent) = (Vec::new(), Vec::new(), Vec::<UnsentCopy>::new());
        for (number, (record, outcome)) in records.iter().zip(&outcomes).enumerate() {
            let (copies, copy) = match outcome {
                MessageOutcome::Refused(rejection) => (&mut dead, refused(number, record, rejection)),
                MessageOutcome::Defective(defect) => {
                    (&mut dead, MessageCopy::defective(number, record.body.clone(), defect))
                }
                MessageOutcome::Postponed(_) => (&mut later, postponed(number, record)),
                MessageOutcome::Changed | MessageOutcome::Unchanged | MessageOutcome::Failed(_) => continue,
            };
            match copy {
                Ok(copy) => copies.push(copy),
                Err(error) => unsent.push((number, error.to_string())),
            }
        }
        let (not_dead, not_later) =
            tokio::join!(send_copies(&self.client, &self.dead, dead), send_copies(&self.client, &self.feed, later));
        for (number, error) in unsent.into_iter().chain(not_dead).chain(not_later) {
            outcomes[number] = MessageOutcome::Failed(format!("its copy cannot be sent: {error}"));
        }
        outcomes
    }
}
