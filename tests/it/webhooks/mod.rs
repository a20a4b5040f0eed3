//! Webhooks, from an event to the receiver's socket.

mod attempts;
mod crashes;
mod drains;
mod fan_out;
mod holding;
mod isolation;
mod notices;
mod recovery;
mod removal;
mod secrets;
mod sweeping;
mod unreadable;

use std::sync::Arc;
use std::time::Duration;

use ::secrets::EndpointSecret;
use platform::resources::Queue;
use tests::{Answer, Received, Receiver, Stack, hand, sale, uuid};
use types::ids::{DeliveryId, UserId};
use webhooks::delivery::{Delivery, LEASE_SECONDS, Status};
use webhooks::delivery_id;
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};

const OFF_BY_FAILURES: Switch = Switch::Off(DisabledReason::DeliveriesFailed);

/// A stack whose time stands still, with an account's endpoint for sales that responds promptly. Nothing happens by itself: the test hands
/// messages to the functions one by one.
pub(crate) struct Scene {
    pub(crate) stack: Arc<Stack>,
    receiver: Arc<Receiver>,
    user: UserId,
    pub(crate) endpoint: WebhookEndpoint,
    secret: EndpointSecret,
}

impl Scene {
    pub(crate) async fn answering(status: u16) -> Self {
        Self::new(Receiver::answering(status).await).await
    }

    /// Makes a scene whose receiver answers each request as `answer` says. `answer` gets the request's number, from
    /// 1.
    async fn with(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(Receiver::start(move |number, _| answer(number)).await).await
    }

    async fn new(receiver: Receiver) -> Self {
        Self::on(Arc::new(Stack::new().await), Arc::new(receiver), 5).await
    }

    /// Makes a scene in the same stack with the same receiver, for the endpoint of another account.
    async fn other(&self, user: u128) -> Self {
        Self::on(Arc::clone(&self.stack), Arc::clone(&self.receiver), user).await
    }

    async fn on(stack: Arc<Stack>, receiver: Arc<Receiver>, user: u128) -> Self {
        let user = uuid(user).into();
        let (endpoint, secret) = stack.endpoint(user, &receiver.url).await;
        stack.prove(&endpoint).await;
        Self { stack, receiver, user, endpoint, secret }
    }

    /// Fans out an event. Returns the id of its delivery.
    pub(crate) async fn event(&self, event: u128) -> DeliveryId {
        self.stack.fan_out(&[sale(event, self.user)]).await;
        delivery_id(uuid(event).into(), self.endpoint.id)
    }

    /// Fans out an event, and stores its delivery as if its message had come twice. Returns the delivery's id.
    pub(crate) async fn stored(&self, event: u128) -> DeliveryId {
        let id = self.event(event).await;
        self.stack.store_carried(id).await;
        id
    }

    /// Hands a delivery's next message to a new instance of the sender.
    async fn attempt(&self, id: DeliveryId) {
        let message = self.stack.next_message(id).await;
        assert_eq!(hand(&self.stack.sender(), &[message]).await, [0; 0]);
    }

    /// Makes a delivery whose first six attempts have failed. The receiver must answer so that they do.
    pub(crate) async fn before_last(&self, event: u128) -> DeliveryId {
        self.failing(event, 6).await
    }

    /// Makes a delivery of which this many attempts have failed. The receiver must answer so that they do.
    async fn failing(&self, event: u128, attempts: u32) -> DeliveryId {
        let id = self.event(event).await;
        for failed in 1..=attempts {
            self.attempt(id).await;
            let delivery = self.delivery(id).await;
            assert_eq!((delivery.progress.status, delivery.progress.failed_attempts), (Status::Pending, failed));
        }
        id
    }

    async fn delivery(&self, id: DeliveryId) -> Delivery {
        self.found(id).await.unwrap()
    }

    /// Returns a delivery, or `None` if it is not stored.
    pub(crate) async fn found(&self, id: DeliveryId) -> Option<Delivery> {
        self.stack.webhooks().store.delivery(id).await.unwrap()
    }

    /// Returns a delivery's status and the number of its recorded attempts.
    pub(crate) async fn standing(&self, id: DeliveryId) -> (Status, usize) {
        let progress = self.delivery(id).await.progress;
        (progress.status, progress.attempts.len())
    }

    async fn switch(&self) -> Switch {
        self.stack.endpoint_of(self.user).await.switch
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
        let slow = self.stack.queue(Queue::WebhooksSlow).await;
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
