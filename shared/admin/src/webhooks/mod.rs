//! What an owner or operator can do with endpoints and their deliveries (specification 6.11.4). The command line is
//! built on it, and a page of the account's settings can be built on it too.

mod deliveries;
pub mod document;
mod endpoints;
mod error;
mod health;
mod keyring;
mod recovery;
mod register;
mod repair;
mod rotate_secret;
mod update;

use std::sync::Arc;

pub use deliveries::WantedDeliveries;
pub use error::WebhookAdminError;
pub use health::EndpointHealth;
pub use keyring::Resealed;
pub use recovery::{Recoverable, Recovery, RecoveryProgress, Selection, Survey};
pub use register::NewEndpoint;
pub use repair::RowRepair;
pub use update::EndpointUpdate;

use common::clock::Clock;
use common::ids::EndpointId;
use webhooks::Drains;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::guard::{Policy, Resolve};
use webhooks::secrets::KeyringCache;
pub use webhooks::store::Removal;
use webhooks::store::WebhookStore;

/// Administers the endpoints of a stack.
pub struct WebhookAdmin {
    pub store: WebhookStore,
    /// Calls the drain of an account after its deliveries were made to wait.
    pub drains: Drains,
    /// The keys that seal endpoint secrets.
    pub keyring: KeyringCache,
    /// Which addresses endpoints may have.
    pub policy: Policy,
    /// Looks up the addresses of endpoints' host names.
    pub resolver: Arc<dyn Resolve>,
    pub clock: Arc<dyn Clock>,
}

impl WebhookAdmin {
    async fn find(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let unknown = WebhookAdminError::UnknownEndpoint(id);
        let Some(account) = self.store.owner_of(id).await? else { return Err(unknown) };
        self.store.endpoint(account, id).await?.ok_or(unknown)
    }
}
