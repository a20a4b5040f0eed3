//! The life of an endpoint, and its deliveries as their owner sees them: what the command line, or a page
//! of the account's settings, is made of.

mod deliveries;
mod endpoints;
mod error;
mod keyring;
mod register;
mod rotate_secret;

use std::sync::Arc;

pub use error::WebhookAdminError;
pub use keyring::Resealed;
pub use register::NewEndpoint;

use guard::{Policy, Resolve};
use secrets::KeyringCache;
use types::clock::Clock;
use types::ids::EndpointId;
use webhooks::Queues;
use webhooks::endpoint::Endpoint;
use webhooks::store::WebhookStore;

/// What administration needs of a stack.
pub struct WebhookAdmin {
    /// The webhooks table.
    pub store: WebhookStore,
    /// The delivery queues.
    pub queues: Queues,
    /// What secrets are sealed with.
    pub keyring: KeyringCache,
    /// Where endpoints may be.
    pub policy: Policy,
    /// Who knows the addresses of their names.
    pub resolver: Arc<dyn Resolve>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl WebhookAdmin {
    async fn find(&self, id: EndpointId) -> Result<Endpoint, WebhookAdminError> {
        let unknown = WebhookAdminError::UnknownEndpoint(id);
        let Some(account) = self.store.owner_of(id).await? else { return Err(unknown) };
        let endpoints = self.store.endpoints(account).await?;
        endpoints.into_iter().find(|endpoint| endpoint.id == id).ok_or(unknown)
    }
}
