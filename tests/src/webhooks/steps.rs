//! The functions behind webhooks, one invocation at a time. The test decides which message comes when, and how often.

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use compact::Compact;
use feed::{Message, parse};
use futures_util::FutureExt;
use ingest::Ingest;
use platform::aws::Missing;
use platform::logging::FUNCTION_VARIABLE;
use platform::resources::Queue;
use platform::service::Service;
use runtime::Worker;
use serde_json::Value;
use sweep::Sweep;
use types::clock::Clock;
use types::ids::{DeliveryId, UserId};
use uuid::Uuid;
use webhook::Webhook;
use webhooks::delivery::{Carried, Dispatch, Lane, overdue_at};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::Put;
use webhooks::{DrainCall, FanOut, QueueMessage, Schedule};

use super::to_loopback;
use crate::proxy::{Fault, Proxy};
use crate::stack::{Stack, variables};

impl Stack {
    /// Returns an instance of the webhook sender at the stack's time, on the schedule of specification 6.8.1.
    pub fn sender(&self) -> Webhook {
        self.sender_at(&self.aws.endpoint_url)
    }

    /// Returns a sender behind a proxy that can be made to fail.
    pub async fn sender_behind_proxy(&self) -> (Webhook, Proxy) {
        let proxy = Proxy::start(&self.aws.endpoint_url).await;
        (self.sender_at(&proxy.url), proxy)
    }

    /// Returns a sender whose AWS side is at this URL.
    pub fn sender_at(&self, endpoint_url: &str) -> Webhook {
        let webhooks = to_loopback(1);
        self.function("webhook", endpoint_url, |service| {
            webhook::worker(service, webhooks.transport, webhooks.schedule)
        })
    }

    /// Returns an instance of `ingest` whose AWS side is at this URL.
    pub fn ingest_at(&self, endpoint_url: &str) -> Ingest {
        self.function("ingest", endpoint_url, ingest::worker)
    }

    /// Returns an instance of `sweep` whose AWS side is at this URL.
    pub fn sweep_at(&self, endpoint_url: &str) -> Sweep {
        self.function("sweep", endpoint_url, |service| sweep::worker(service, Schedule::default()))
    }

    /// Returns an instance of `compact`.
    pub fn compact(&self) -> Compact {
        self.function("compact", &self.aws.endpoint_url, compact::worker)
    }

    /// Runs the sweep once.
    pub async fn sweep(&self) {
        self.sweep_at(&self.aws.endpoint_url).work(Value::Null).boxed().await.unwrap();
    }

    /// Fans out events, none of which may have been fanned out before. Their messages are left in the queues.
    pub async fn fan_out(&self, events: &[Value]) {
        let (admin, now) = (self.webhooks(), self.clock.now());
        let event = |message: &Value| match parse(&message.to_string(), now) {
            Ok(Message::Event(event)) => event,
            other => panic!("not an event: {other:?}"),
        };
        let events = events.iter().map(|message| ((), event(message))).collect();
        for ((), outcome) in FanOut::new(admin.store, self.lanes()).apply(events, now).await {
            assert!(outcome.unwrap());
        }
    }

    /// Returns the message that calls for a delivery's next attempt, as it would come from its queue for the first time.
    /// If the delivery is not stored, the message that carries it is still in a queue.
    pub async fn next_message(&self, id: DeliveryId) -> SqsMessage {
        let Some(delivery) = self.webhooks().store.delivery(id).await.unwrap() else {
            return self.carrying_message(id).await;
        };
        let dispatch = Dispatch::next_of(&delivery);
        let lane = if (dispatch.round, dispatch.attempt) == (1, 1) { Lane::First } else { Lane::Retry };
        message(lane, &serde_json::to_string(&QueueMessage::Attempt(dispatch)).unwrap())
    }

    /// Returns the delivery that a message in a queue carries.
    pub async fn carried(&self, id: DeliveryId) -> Arc<Carried> {
        let message = self.carrying_message(id).await;
        let Ok(QueueMessage::First(carried)) = QueueMessage::parse(message.body.as_deref().unwrap()) else {
            panic!("the message of {id} does not carry it");
        };
        carried
    }

    /// Stores a delivery whose message is still in its queue, as a sender does that receives the message again.
    pub async fn store_carried(&self, id: DeliveryId) {
        let (store, now) = (self.webhooks().store, self.clock.now());
        let delivery = self.carried(id).await.stored(overdue_at(Schedule::default(), now));
        store.call_drain_by(delivery.account_id, overdue_at(Schedule::default(), now), now).await.unwrap();
        assert_eq!(store.put_delivery(&delivery).await.unwrap(), Put::New);
    }

    /// Takes every message that carries a delivery out of its queue, and stores the delivery.
    pub async fn store_all_carried(&self) {
        let (store, now) = (self.webhooks().store, self.clock.now());
        for queue in Queue::LANES {
            let queue = self.queue(queue).await;
            for message in queue.take(usize::try_from(queue.visible_count().await).unwrap()).await {
                if let Ok(QueueMessage::First(carried)) = QueueMessage::parse(message.body.as_deref().unwrap()) {
                    let wake_at = overdue_at(Schedule::default(), now);
                    store.call_drain_by(carried.account_id, wake_at, now).await.unwrap();
                    store.put_delivery(&carried.stored(wake_at)).await.unwrap();
                }
            }
        }
    }

    /// Notes that an endpoint responds promptly. From then on its attempts are made at once.
    pub async fn prove(&self, endpoint: &WebhookEndpoint) {
        self.webhooks().store.mark_prompt(endpoint, true).await.unwrap();
    }

    /// Returns the message that calls for a run of an account's drain, which was called before.
    pub async fn drain_message(&self, account_id: UserId) -> SqsMessage {
        let token = self.webhooks().store.drain(account_id).await.unwrap().unwrap().token;
        let call = QueueMessage::Drain(DrainCall { account_id, token });
        message(Lane::Slow, &serde_json::to_string(&call).unwrap())
    }

    /// Runs an account's drain once, in a new instance of the sender. The drain was called before.
    pub async fn drain(&self, account_id: UserId) {
        let message = self.drain_message(account_id).await;
        assert_eq!(hand(&self.sender(), &[message]).await, [0; 0]);
    }

    /// Returns the message that carries a delivery, and leaves it in its queue.
    async fn carrying_message(&self, id: DeliveryId) -> SqsMessage {
        let word = format!(r#""delivery_id":"{id}""#);
        for (lane, queue) in Lane::ALL.into_iter().zip(Queue::LANES) {
            if let Some(body) = self.queue(queue).await.find(&word).await {
                return message(lane, &body);
            }
        }
        panic!("delivery {id} is neither stored nor in a queue")
    }

    fn function<W>(
        &self,
        name: &'static str,
        endpoint_url: &str,
        build: impl FnOnce(&Service<'_>) -> Result<W, Missing>,
    ) -> W {
        let variables = variables(endpoint_url).with(FUNCTION_VARIABLE, name);
        self.host_with(&variables, self.clock.clone()).function(name, build).unwrap()
    }
}

/// Returns a message with this body, as it would come from a delivery queue.
pub fn message(lane: Lane, body: &str) -> SqsMessage {
    record(body, &format!("arn:aws:sqs:us-east-1:000000000000:marketplace-webhooks-{}", lane.as_str()))
}

/// Returns a message with this body, as it would come from the queue with this ARN.
pub(crate) fn record(body: &str, queue_arn: &str) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id = Some(Uuid::new_v4().to_string());
    record.body = Some(body.to_owned());
    record.attributes.insert("ApproximateReceiveCount".to_owned(), "1".to_owned());
    record.event_source_arn = Some(queue_arn.to_owned());
    record
}

/// Returns a message as SQS delivers it again.
pub fn again(message: &SqsMessage) -> SqsMessage {
    let mut message = message.clone();
    message.attributes.insert("ApproximateReceiveCount".to_owned(), "2".to_owned());
    message
}

/// Hands a batch to an instance. Returns the positions in the batch that it reported as failed.
pub async fn hand<W>(worker: &W, batch: &[SqsMessage]) -> Vec<usize>
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
{
    let mut event = SqsEvent::default();
    event.records = batch.to_vec();
    let response = worker.work(event).boxed().await.unwrap();
    let failed = response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str());
    let position = |id: &str| batch.iter().position(|record| record.message_id.as_deref() == Some(id)).unwrap();
    failed.map(position).collect()
}

/// Hands a batch to an instance that dies at its `call`-th call to AWS, counted from 1: before the call arrives
/// ([`Fault::Hang`]) or after it took effect ([`Fault::HangAfter`]). Returns whether there was such a call.
pub async fn hand_to_die<W>(worker: &W, proxy: &Proxy, batch: &[SqsMessage], call: usize, fault: Fault) -> bool
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
{
    let mut calls = 0;
    proxy.plan(move |_| {
        calls += 1;
        if calls == call { fault.clone() } else { Fault::None }
    });
    tokio::select! {
        _ = hand(worker, batch) => false,
        () = proxy.wait_until_stuck() => true,
    }
}
