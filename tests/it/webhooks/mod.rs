//! Webhooks, from an event to the receiver's socket.

mod attempts;
mod crashes;
mod drains;
mod endpoints;
mod fan_out;
mod holding;
mod notices;
mod proof;
mod recovery;
mod secrets;
mod unreadable;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use common::ids::{DeliveryId, UserId};
use common::resources::Queue;
use serde_json::Value;
use tests::{Answer, Received, Receiver, Stack, hand, message, sale, uuid};
use webhooks::delivery::{Attempt, Delivery, LEASE_SECONDS, Lane, Progress, Status, overdue_at};
use webhooks::delivery_id;
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};
use webhooks::promptness::SLOW_FOR_SECONDS;
use webhooks::secrets::EndpointSecret;
use webhooks::{ATTEMPTS, Schedule};

const OFF_BY_FAILURES: Switch = Switch::Off(DisabledReason::DeliveriesFailed);
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// A delivery's status and number of attempts after its last attempt has failed, and how many have failed before that.
const EXHAUSTED: (Status, usize) = (Status::Failed, ATTEMPTS as usize);
const BEFORE_LAST: u32 = ATTEMPTS - 1;
/// How long after it was due a message is taken for lost.
const OVERDUE_SECONDS: i64 = 5 * 60;

/// A stack whose time stands still, with an account's endpoint for sales that responds promptly. Nothing happens by
/// itself: the test hands messages to the functions one by one.
pub(crate) struct Scene {
    pub(crate) stack: Arc<Stack>,
    receiver: Arc<Receiver>,
    user: UserId,
    pub(crate) endpoint: WebhookEndpoint,
    secret: EndpointSecret,
}

/// Starts a receiver that answers each request as `answer` says. `answer` gets the request's number, from 1.
async fn receiver(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Arc<Receiver> {
    Arc::new(Receiver::start(move |number, _| answer(number)).await)
}

/// Returns the message that an event comes with from the feed.
fn feed_message(event: &Value) -> SqsMessage {
    message(Lane::First, &event.to_string())
}

impl Scene {
    pub(crate) async fn answering(status: u16) -> Self {
        Self::with(move |_| Answer::Status(status)).await
    }

    /// Makes a scene whose receiver answers each request as `answer` says.
    async fn with(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::on(Arc::new(Stack::new().await), receiver(answer).await, 5).await
    }

    /// Makes a scene whose receiver fails until the switch is set.
    async fn failing_until_well() -> (Self, Arc<AtomicBool>) {
        let is_well = Arc::new(AtomicBool::new(false));
        let answers = Arc::clone(&is_well);
        let status = move || if answers.load(Ordering::Relaxed) { 204 } else { 500 };
        (Self::with(move |_| Answer::Status(status())).await, is_well)
    }

    /// Makes a scene of another account in the same stack, with a receiver of its own.
    async fn beside(&self, user: u128, answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::on(Arc::clone(&self.stack), receiver(answer).await, user).await
    }

    /// Makes a scene of another account in the same stack with the same receiver.
    pub(crate) async fn other(&self, user: u128) -> Self {
        Self::on(Arc::clone(&self.stack), Arc::clone(&self.receiver), user).await
    }

    async fn on(stack: Arc<Stack>, receiver: Arc<Receiver>, user: u128) -> Self {
        let user = uuid(user).into();
        let (endpoint, secret) = stack.endpoint(user, &receiver.url).await;
        stack.prove(&endpoint).await;
        Self { stack, receiver, user, endpoint, secret }
    }

    /// Makes the endpoint one that has yet to show that it responds promptly.
    async fn unproven(self) -> Self {
        assert!(
            self.stack
                .webhooks()
                .store
                .mark_prompt(&self.endpoint, false, self.stack.now().plus_millis(-1_000 * SLOW_FOR_SECONDS))
                .await
                .unwrap()
        );
        self
    }

    /// Returns the id of an event's delivery.
    fn id(&self, event: u128) -> DeliveryId {
        delivery_id(uuid(event).into(), self.endpoint.id)
    }

    /// Fans out an event. Returns the id of its delivery.
    pub(crate) async fn event(&self, event: u128) -> DeliveryId {
        self.stack.fan_out(&[sale(event, self.user)]).await;
        self.id(event)
    }

    /// Fans out an event. Returns the id of its delivery, and the message that carries it.
    async fn sent(&self, event: u128) -> (DeliveryId, [SqsMessage; 1]) {
        let id = self.event(event).await;
        (id, self.message(id).await)
    }

    /// Returns the message that calls for a delivery's next attempt.
    async fn message(&self, id: DeliveryId) -> [SqsMessage; 1] {
        [self.stack.next_message(id).await]
    }

    /// Stores the delivery of an event with this progress, as if its message had come before.
    async fn put(&self, event: u128, change: impl FnOnce(&mut Progress)) -> DeliveryId {
        let (store, now) = (self.stack.webhooks().store, self.stack.now());
        let overdue_at = overdue_at(Schedule::default(), now);
        let mut delivery = tests::delivery(event, &self.endpoint, Status::Pending, now);
        delivery.progress.wake_at = Some(overdue_at);
        change(&mut delivery.progress);
        store.wake_drain_by(self.user, overdue_at, now).await.unwrap();
        self.stack.put_deliveries(&[delivery]).await;
        self.id(event)
    }

    /// Stores the delivery of an event, whose first message is lost.
    pub(crate) async fn stored(&self, event: u128) -> DeliveryId {
        self.put(event, |_| {}).await
    }

    /// Stores a delivery of which this many attempts have failed, in the endpoint's present epoch. Nobody was told.
    async fn failed(&self, event: u128, attempts: u32) -> DeliveryId {
        let (now, epoch) = (self.stack.now(), self.stack.endpoint_of(self.user).await.epoch);
        let failed = |progress: &mut Progress| {
            (progress.failed_attempts, progress.epoch) = (attempts, Some(epoch));
            progress.attempts = vec![Attempt { status: Some(500), ..Attempt::lost(now) }; attempts as usize];
        };
        self.put(event, failed).await
    }

    /// Makes a delivery of which all attempts but the last have failed. The receiver must answer so that they do.
    pub(crate) async fn before_last(&self, event: u128) -> DeliveryId {
        self.failing(event, BEFORE_LAST).await
    }

    /// Makes a delivery of which this many attempts have failed, one by one. The receiver must answer so that they do.
    async fn failing(&self, event: u128, attempts: u32) -> DeliveryId {
        let id = self.event(event).await;
        for failed in 1..=attempts {
            self.attempt(id).await;
            let delivery = self.delivery(id).await;
            assert_eq!((delivery.progress.status, delivery.progress.failed_attempts), (Status::Pending, failed));
        }
        id
    }

    /// Makes a delivery whose fourth attempt has failed, of which the owner was warned. The receiver must answer so.
    async fn warned(&self, event: u128) -> DeliveryId {
        let id = self.failed(event, 3).await;
        self.attempt(id).await;
        assert_eq!((self.standing(id).await, self.stack.take_all_notices().await.len()), ((Status::Pending, 4), 1));
        id
    }

    /// Hands messages to a new instance of the sender, which acknowledges them.
    async fn handle(&self, messages: &[SqsMessage]) {
        assert_eq!(hand(&self.stack.sender(), messages).await, [0; 0]);
    }

    /// Hands a delivery's next message to a new instance of the sender.
    async fn attempt(&self, id: DeliveryId) {
        self.handle(&self.message(id).await).await;
    }

    async fn delivery(&self, id: DeliveryId) -> Delivery {
        self.found(id).await.unwrap()
    }

    /// Returns a delivery, or `None` if it is not stored.
    async fn found(&self, id: DeliveryId) -> Option<Delivery> {
        self.stack.webhooks().store.delivery(id).await.unwrap()
    }

    /// Returns a delivery's status and the number of its recorded attempts.
    pub(crate) async fn standing(&self, id: DeliveryId) -> (Status, usize) {
        let progress = self.delivery(id).await.progress;
        (progress.status, progress.attempts.len())
    }

    /// Asserts that each of these was delivered by its only POST.
    async fn assert_delivered(&self, ids: &[DeliveryId]) {
        for id in ids {
            assert_eq!((self.standing(*id).await, self.posts(*id).len()), ((Status::Delivered, 1), 1), "{id}");
        }
    }

    async fn switch(&self) -> Switch {
        self.stack.endpoint_of(self.user).await.switch
    }

    async fn disable(&self) {
        self.stack.webhooks().disable(self.endpoint.id).await.unwrap();
    }

    async fn enable(&self) {
        self.stack.webhooks().enable(self.endpoint.id).await.unwrap();
    }

    pub(crate) fn wait(&self, seconds: i64) {
        self.stack.clock.advance(Duration::from_secs(seconds.unsigned_abs()));
    }

    /// Moves time past the end of every lease that is held now.
    fn outlast_leases(&self) {
        self.wait(LEASE_SECONDS + 1);
    }

    /// Sweeps. If that calls the drain, runs it until it rests.
    async fn sweep_and_drain(&self) {
        let slow = self.stack.queue(Queue::WebhooksSlow);
        let before = slow.count().await;
        self.stack.sweep().await;
        if slow.count().await > before {
            self.stack.drain(self.user).await;
        }
    }

    /// Returns the POSTs of a delivery that have arrived so far.
    fn posts(&self, id: DeliveryId) -> Vec<Received> {
        let mut posts = self.receiver.so_far();
        posts.retain(|post| post.id() == id.to_string());
        posts
    }
}
