//! Endpoints and deliveries of a stack, and the functions behind webhooks, one invocation at a time: the test decides which
//! message comes when, and how often.

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::Arc;

use admin::webhooks::{NewEndpoint, WantedDeliveries, WebhookAdmin};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, UserId};
use common::logging::FUNCTION_VARIABLE;
use common::preflight;
use common::resources::Queue;
use common::runtime::{Service, Worker};
use common::timestamp::Timestamp;
use compact::Compact;
use feed::{Message, parse};
use futures_util::FutureExt;
use futures_util::future::join_all;
use ingest::Ingest;
use local::environment::Variables;
use local::workers::SenderConfig;
use serde_json::{Value, json};
use sweep::Sweep;
use tokio::time::{Duration, Instant, sleep};
use uuid::Uuid;
use webhook::Webhook;
use webhook::transport::{Reach, Transport};
use webhooks::delivery::{Carried, Delivery, Dispatch, Lane, Progress, Status, overdue_at};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::guard::Policy;
use webhooks::secrets::{EndpointSecret, KeyringCache};
use webhooks::store::{Put, WebhookStore};
use webhooks::{DrainMessage, Drains, FanOut, QueueMessage, Queues, Schedule, delivery_id};

use crate::proxy::{Fault, Proxy};
use crate::stack::{Stack, variables};

/// A delivery that has not got this far by then never will.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Webhooks that may go to this machine, with the delays of the specification divided by `time_scale`.
pub fn to_loopback(time_scale: u32) -> SenderConfig {
    let schedule = Schedule::scaled_by(NonZeroU32::new(time_scale).unwrap());
    SenderConfig { transport: Transport::new(loopback()).unwrap(), schedule }
}

/// Webhooks that may go to this machine. Receivers have 20 seconds to respond, so a slow machine does not change the
/// order of events.
pub fn patient() -> SenderConfig {
    let transport = Transport::with_deadline(loopback(), Duration::from_secs(20)).unwrap();
    SenderConfig { transport, schedule: Schedule::default() }
}

fn loopback() -> Reach {
    Reach { policy: Policy::with_loopback(), ..Reach::public() }
}

/// Returns the feed's message about the sale of a listing.
pub fn sale(event: u128, account: UserId) -> Value {
    json!({
        "type": "event", "id": Uuid::from_u128(event), "event": "listing.sold", "account_id": account,
        "created_at": "2026-11-20T10:00:00Z",
        "data": {"listing_id": Uuid::from_u128(1), "order_id": Uuid::from_u128(2), "price_usd": "12.50", "kind": "bot"},
    })
}

/// Looks again and again until what it sees is as it should be.
pub async fn until<T: Debug>(mut look: impl AsyncFnMut() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let begun = Instant::now();
    loop {
        let seen = look().await;
        if is_so(&seen) {
            return seen;
        }
        assert!(begun.elapsed() < WAIT_TIMEOUT, "{seen:?}");
        sleep(POLL_INTERVAL).await;
    }
}

/// Returns the delivery of the event with this number to an endpoint, as it is when it is created.
pub fn delivery(event: u128, endpoint: &WebhookEndpoint, status: Status, created_at: Timestamp) -> Delivery {
    let event_id = Uuid::from_u128(event).into();
    let id = delivery_id(event_id, endpoint.id);
    Delivery {
        id,
        endpoint_id: endpoint.id,
        account_id: endpoint.account_id,
        event: EventKind::ListingSold,
        event_id: Some(event_id),
        is_test: false,
        created_at,
        body: "{}".to_owned(),
        progress: Progress::new(id, status, created_at, created_at),
    }
}

impl Stack {
    /// Returns the administration of endpoints at the stack's time, with loopback allowed.
    pub fn webhooks(&self) -> WebhookAdmin {
        self.with_service(|service| {
            let (sqs, [slow]) = common::queues::from_service(service, [Queue::WebhooksSlow]).unwrap();
            let store = WebhookStore::from_service(service, Patience::Bulk, preflight::get).unwrap();
            WebhookAdmin {
                drains: Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), Schedule::default()),
                store,
                keyring: KeyringCache::from_service(service).unwrap(),
                policy: Policy::with_loopback(),
                clock: self.clock.clone(),
            }
        })
    }

    /// Returns the first lane and the retry lane.
    pub fn lanes(&self) -> Queues {
        self.with_service(|service| {
            let lanes = [Queue::WebhooksFirst, Queue::WebhooksRetry];
            let (sqs, [first, retry]) = common::queues::from_service(service, lanes).unwrap();
            Queues::new(sqs, [(Lane::First, first), (Lane::Retry, retry)])
        })
    }

    fn with_service<T>(&self, build: impl FnOnce(&Service<'_>) -> T) -> T {
        let variables = Variables::new(&self.aws.endpoint_url);
        let lookup = |name: &str| variables.get(name);
        build(&Service::new(&lookup, self.clock.clone()).unwrap())
    }

    /// Adds an endpoint that selects sales.
    pub async fn endpoint(&self, user_id: UserId, url: &str) -> (WebhookEndpoint, EndpointSecret) {
        let new = NewEndpoint { user_id, url: url.to_owned(), events: [EventKind::ListingSold].into() };
        self.webhooks().add(new).await.unwrap()
    }

    /// Returns an account's only endpoint.
    pub async fn endpoint_of(&self, user_id: UserId) -> WebhookEndpoint {
        let [endpoint] = self.webhooks().list(user_id).await.unwrap().readable.try_into().unwrap();
        endpoint
    }

    /// Waits until an account's only endpoint is as it should be.
    pub async fn endpoint_when(&self, user_id: UserId, is_so: impl Fn(&WebhookEndpoint) -> bool) -> WebhookEndpoint {
        until(async || self.endpoint_of(user_id).await, is_so).await
    }

    /// Returns an endpoint's deliveries, newest first.
    pub async fn deliveries(&self, endpoint: EndpointId) -> Vec<Delivery> {
        self.webhooks().deliveries(endpoint, &WantedDeliveries::default(), None, 1_000).await.unwrap().deliveries
    }

    /// Waits until a delivery is as it should be.
    pub async fn delivery_when(&self, id: DeliveryId, is_so: impl Fn(&Delivery) -> bool) -> Delivery {
        let admin = self.webhooks();
        until(async || admin.delivery(id).await, |found| found.as_ref().is_ok_and(&is_so)).await.unwrap()
    }

    /// Waits until a delivery has this status.
    pub async fn delivery_as(&self, id: DeliveryId, status: Status) -> Delivery {
        self.delivery_when(id, |delivery| delivery.progress.status == status).await
    }

    /// Stores deliveries, all at the same time.
    pub async fn put_deliveries(&self, deliveries: &[Delivery]) {
        let store = self.webhooks().store;
        for put in join_all(deliveries.iter().map(|delivery| store.put_delivery(delivery))).await {
            assert_eq!(put.unwrap(), Put::New);
        }
    }

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
        self.sender_with(endpoint_url, to_loopback(1))
    }

    /// Returns a sender with another way to send webhooks.
    pub fn sender_sending(&self, webhooks: SenderConfig) -> Webhook {
        self.sender_with(&self.aws.endpoint_url, webhooks)
    }

    fn sender_with(&self, endpoint_url: &str, webhooks: SenderConfig) -> Webhook {
        let SenderConfig { transport, schedule } = webhooks;
        self.function("webhook", endpoint_url, |service| webhook::worker(service, transport, schedule))
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
        store.wake_drain_by(delivery.account_id, overdue_at(Schedule::default(), now), now).await.unwrap();
        assert_eq!(store.put_delivery(&delivery).await.unwrap(), Put::New);
    }

    /// Takes every message that carries a delivery out of its queue, and stores the delivery.
    pub async fn store_all_carried(&self) {
        let (store, now) = (self.webhooks().store, self.clock.now());
        for queue in Queue::LANES {
            let queue = self.queue(queue);
            for message in queue.take(usize::try_from(queue.visible_count().await).unwrap()).await {
                if let Ok(QueueMessage::First(carried)) = QueueMessage::parse(message.body.as_deref().unwrap()) {
                    let wake_at = overdue_at(Schedule::default(), now);
                    store.wake_drain_by(carried.account_id, wake_at, now).await.unwrap();
                    store.put_delivery(&carried.stored(wake_at)).await.unwrap();
                }
            }
        }
    }

    /// Notes that an endpoint responds promptly. From then on its attempts are made at once.
    pub async fn prove(&self, endpoint: &WebhookEndpoint) {
        self.webhooks().store.mark_prompt(endpoint, true, self.now()).await.unwrap();
    }

    /// Returns the message that calls for a run of an account's drain, which was called before.
    pub async fn drain_message(&self, account_id: UserId) -> SqsMessage {
        let token = self.webhooks().store.drain(account_id).await.unwrap().unwrap().token;
        let call = QueueMessage::Drain(DrainMessage { account_id, token });
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
            if let Some(body) = self.queue(queue).find(&word).await {
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
