//! Webhooks from an event to a receiver's socket.

mod crashes;
mod deployed;
mod duplicates;
mod exhaustion;
mod fan_out;
mod faults;
mod holding;
mod isolation;
mod late;
mod poison;
mod removal;
mod schedule;
mod secrets;
mod sweeping;
mod trial;

use std::sync::Arc;
use std::time::Duration;

use ::secrets::EndpointSecret;
use tests::{Answer, Received, Receiver, Stack, hand, sale, uuid};
use types::ids::{DeliveryId, UserId};
use webhooks::delivery::{Delivery, LEASE_SECONDS, Status};
use webhooks::delivery_id;
use webhooks::endpoint::{DisabledReason, Endpoint, Switch};

const OFF_BY_FAILURES: Switch = Switch::Off(DisabledReason::DeliveriesFailed);

/// A stack whose time stands still, and an account's endpoint for sales. Nothing happens by itself: messages
/// are handed to the functions one by one.
pub(crate) struct Scene {
    pub(crate) stack: Arc<Stack>,
    receiver: Arc<Receiver>,
    user: UserId,
    pub(crate) endpoint: Endpoint,
    secret: EndpointSecret,
}

impl Scene {
    pub(crate) async fn answering(status: u16) -> Self {
        Self::new(Receiver::answering(status).await).await
    }

    /// One whose receiver answers each request as `answer` says, which is told the request's number, from 1.
    async fn with(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(Receiver::start(move |number, _| answer(number)).await).await
    }

    async fn new(receiver: Receiver) -> Self {
        Self::on(Arc::new(Stack::new().await), Arc::new(receiver), 5).await
    }

    /// The endpoint of another account of the same stack, with the same receiver.
    async fn other(&self, user: u128) -> Self {
        Self::on(Arc::clone(&self.stack), Arc::clone(&self.receiver), user).await
    }

    async fn on(stack: Arc<Stack>, receiver: Arc<Receiver>, user: u128) -> Self {
        let user = uuid(user).into();
        let (endpoint, secret) = stack.endpoint(user, &receiver.url).await;
        Self { stack, receiver, user, endpoint, secret }
    }

    /// An event happens: its delivery.
    pub(crate) async fn event(&self, event: u128) -> DeliveryId {
        self.stack.fan_out(&[sale(event, self.user)]).await;
        delivery_id(uuid(event).into(), self.endpoint.id)
    }

    /// Hands a delivery's next message to a new instance of the sender.
    async fn attempt(&self, id: DeliveryId) {
        let message = self.stack.next_message(id).await;
        assert_eq!(hand(&self.stack.sender(), &[message]).await, [0; 0]);
    }

    /// A delivery whose first six attempts have failed, which is for the receiver to see to.
    pub(crate) async fn before_last(&self, event: u128) -> DeliveryId {
        let id = self.event(event).await;
        for failed in 1..=6 {
            self.attempt(id).await;
            let delivery = self.delivery(id).await;
            assert_eq!((delivery.progress.status, delivery.progress.recorded), (Status::Pending, failed));
        }
        id
    }

    async fn delivery(&self, id: DeliveryId) -> Delivery {
        self.stack.webhooks().delivery(id).await.unwrap()
    }

    /// A delivery's status, and how many attempts are on record.
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

    /// Waits until whoever makes an attempt now has lost the right to.
    fn outlast_leases(&self) {
        self.wait(LEASE_SECONDS + 1);
    }

    /// What has been sent for a delivery so far.
    fn posts(&self, id: DeliveryId) -> Vec<Received> {
        let mut posts = self.receiver.so_far();
        posts.retain(|post| post.id() == id.to_string());
        posts
    }
}
