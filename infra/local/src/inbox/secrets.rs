//! Finds the secrets that the inbox verifies deliveries with.

use std::sync::Arc;
use std::time::Duration;

use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::ids::DeliveryId;
use common::preflight;
use common::runtime::Service;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::request::Parts;
use webhooks::secrets::{EndpointSecret, KeyringCache};
use webhooks::store::WebhookStore;

/// The longest wait for secrets. Meanwhile the sender waits for the inbox's answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds the secrets of registered endpoints.
pub trait SecretSource: Send + Sync {
    /// Returns the currently valid secrets of the endpoint that a delivery with this head was sent to, or none if the
    /// endpoint is not known. The answer to the delivery waits for this.
    fn secrets_for<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Vec<EndpointSecret>>;
}

/// Finds the secrets of the stack's own endpoints, by the deliveries in its webhooks table.
pub struct StoredSecrets {
    store: WebhookStore,
    keyring: KeyringCache,
    clock: Arc<dyn Clock>,
}

impl StoredSecrets {
    /// Uses the webhooks table and the keyring that a function would use in this environment.
    pub fn new(service: &Service<'_>) -> Result<Self, Missing> {
        let store = WebhookStore::from_service(service, Patience::Request, preflight::get)?;
        Ok(Self { store, keyring: KeyringCache::from_service(service)?, clock: Arc::clone(&service.clock) })
    }

    async fn find(&self, id: DeliveryId) -> Option<Vec<EndpointSecret>> {
        let delivery = self.store.delivery(id).await.ok()??;
        let endpoint = self.store.endpoint(delivery.account_id, delivery.endpoint_id).await.ok()??;
        let secrets = self.keyring.open(endpoint.id, &endpoint.secrets).await.ok()?;
        Some(secrets.valid(self.clock.now()).cloned().collect())
    }
}

impl SecretSource for StoredSecrets {
    fn secrets_for<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Vec<EndpointSecret>> {
        let id = head.headers.get("x-service-delivery-id").and_then(|id| id.to_str().ok()?.parse().ok());
        async move {
            let Some(id) = id else { return Vec::new() };
            let found = tokio::time::timeout(LOOKUP_TIMEOUT, self.find(id)).await;
            found.ok().flatten().unwrap_or_default()
        }
        .boxed()
    }
}
