//! Endpoints and deliveries of a stack, through the library that `marketctl` uses.

mod steps;

use secrets::KeyringCache;
use std::num::NonZeroU32;
use std::sync::Arc;
use webhooks::delivery::Lane;
use webhooks::store::WebhookStore;

use admin::webhooks::{NewEndpoint, WantedDeliveries, WebhookAdmin};
use guard::{Policy, SystemResolver};
use local::environment::Variables;
use local::workers::SenderConfig;
use platform::aws::Patience;
use platform::preflight;
use platform::resources::Queue;
use platform::service::Service;
use secrets::EndpointSecret;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use types::clock::Clock;
use types::event::EventKind;
use types::ids::{DeliveryId, EndpointId, UserId};
use uuid::Uuid;
use webhook::transport::{Reach, Transport};
use webhooks::delivery::{Delivery, Status};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::{Drains, Queues, Schedule};

use crate::stack::Stack;

pub(crate) use steps::record;
pub use steps::{again, hand, hand_to_die, message};

/// A delivery that has not got this far by then never will.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Webhooks that may go to this machine, with the delays of the specification divided by `time_scale`.
pub fn to_loopback(time_scale: u32) -> SenderConfig {
    let reach = Reach { policy: Policy::with_loopback(), ..Reach::public() };
    let schedule = Schedule::scaled_by(NonZeroU32::new(time_scale).unwrap());
    SenderConfig { transport: Transport::new(reach).unwrap(), schedule }
}

/// Returns the feed's message about the sale of a listing.
pub fn sale(event: u128, account: UserId) -> Value {
    json!({
        "type": "event", "id": Uuid::from_u128(event), "event": "listing.sold", "account_id": account,
        "created_at": "2026-11-20T10:00:00Z",
        "data": {"listing_id": Uuid::from_u128(1), "order_id": Uuid::from_u128(2), "price_usd": "12.50", "kind": "bot"},
    })
}

impl Stack {
    /// Returns the administration of endpoints at the stack's time, with loopback allowed.
    pub fn webhooks(&self) -> WebhookAdmin {
        let variables = Variables::new(&self.aws.endpoint_url);
        let lookup = |name: &str| variables.get(name);
        let clock: Arc<dyn Clock> = self.clock.clone();
        let service = Service::new(&lookup, Arc::clone(&clock)).unwrap();
        let (sqs, [slow]) = queues::from_service(&service, [Queue::WebhooksSlow]).unwrap();
        let store = WebhookStore::from_service(&service, Patience::Bulk, preflight::get).unwrap();
        WebhookAdmin {
            drains: Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), Schedule::default()),
            store,
            keyring: KeyringCache::from_service(&service).unwrap(),
            policy: Policy::with_loopback(),
            resolver: Arc::new(SystemResolver),
            clock,
        }
    }

    /// Returns the first lane and the retry lane.
    pub fn lanes(&self) -> Queues {
        let variables = Variables::new(&self.aws.endpoint_url);
        let lookup = |name: &str| variables.get(name);
        let service = Service::new(&lookup, self.clock.clone()).unwrap();
        let lanes = [Queue::WebhooksFirst, Queue::WebhooksRetry];
        let (sqs, [first, retry]) = queues::from_service(&service, lanes).unwrap();
        Queues::new(sqs, [(Lane::First, first), (Lane::Retry, retry)])
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
        let begun = Instant::now();
        loop {
            let endpoint = self.endpoint_of(user_id).await;
            if is_so(&endpoint) {
                return endpoint;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{endpoint:?}");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns an endpoint's deliveries, newest first.
    pub async fn deliveries(&self, endpoint: EndpointId) -> Vec<Delivery> {
        self.webhooks().deliveries(endpoint, &WantedDeliveries::default(), None, 1_000).await.unwrap().deliveries
    }

    /// Waits until a delivery is as it should be.
    pub async fn delivery_when(&self, id: DeliveryId, is_so: impl Fn(&Delivery) -> bool) -> Delivery {
        let (admin, begun) = (self.webhooks(), Instant::now());
        loop {
            match admin.delivery(id).await {
                Ok(delivery) if is_so(&delivery) => return delivery,
                other => assert!(begun.elapsed() < WAIT_TIMEOUT, "{other:?}"),
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until a delivery has this status.
    pub async fn delivery_as(&self, id: DeliveryId, status: Status) -> Delivery {
        self.delivery_when(id, |delivery| delivery.progress.status == status).await
    }
}
