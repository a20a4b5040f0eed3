//! What an owner or operator can do with endpoints and their deliveries (specification 6.11.4), and the errors in words
//! for the owner of an endpoint. No text names a resolved address (specification 6.12.6).

mod deliveries;
pub mod document;
mod endpoints;
mod health;
mod keyring;
mod recovery;

use std::sync::Arc;

use common::clock::Clock;
use common::ids::{DeliveryId, EndpointId};
use common::rotation::RotationError;
use common::store::StoreError;
pub(crate) use deliveries::ResentBy;
pub use deliveries::WantedDeliveries;
pub use endpoints::{EndpointUpdate, NewEndpoint};
pub use health::EndpointHealth;
pub use keyring::Resealed;
pub use recovery::{Recoverable, Recovery, RecoveryProgress, Selection, Survey};
use thiserror::Error;
use webhooks::Drains;
use webhooks::delivery::{MAX_OWNER_ROUNDS_A_DAY, MAX_ROUNDS};
use webhooks::endpoint::{MAX_ENDPOINTS, MAX_TRIALS_A_MINUTE, MAX_TRIALS_OF_ACCOUNT, WebhookEndpoint};
use webhooks::guard::Policy;
use webhooks::secrets::{KeyringAccessError, KeyringCache};
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
    pub clock: Arc<dyn Clock>,
}

impl WebhookAdmin {
    /// Returns an endpoint without its state.
    pub async fn find(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let unknown = WebhookAdminError::UnknownEndpoint(id);
        let Some(account) = self.store.owner_of(id).await? else { return Err(unknown) };
        self.store.endpoint(account, id).await?.ok_or(unknown)
    }
}

/// Why something was not done. Nothing has changed, unless the text says so.
#[derive(Clone, Debug, Error)]
pub enum WebhookAdminError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keyring cannot be read or written, or does not open a secret.
    #[error(transparent)]
    Keyring(#[from] KeyringAccessError),
    #[error("{field}: {reason}")]
    Invalid {
        field: &'static str,
        /// The rule that the field breaks.
        reason: String,
    },
    #[error("the account has {MAX_ENDPOINTS} endpoints already")]
    TooMany,
    /// The endpoint does not exist or was removed.
    #[error("no endpoint has the id {0}")]
    UnknownEndpoint(EndpointId),
    /// The delivery never existed or is no longer kept.
    #[error("no delivery has the id {0}; deliveries are kept for 35 days")]
    UnknownDelivery(DeliveryId),
    #[error("endpoint {0} is disabled")]
    Disabled(EndpointId),
    /// The delivery's endpoint was removed.
    #[error("endpoint {0} was removed")]
    Removed(EndpointId),
    /// The endpoint or its account had as many trials as it may have in a minute.
    #[error(
        "an endpoint is tested and gets another URL at most {MAX_TRIALS_A_MINUTE} times in a minute, and all of an account, with new ones and with resends, {MAX_TRIALS_OF_ACCOUNT} times; try again in {seconds} seconds"
    )]
    TooManyTrials { seconds: u32 },
    /// An attempt is being made, so no new round can begin.
    #[error("an attempt of delivery {0} is being made right now")]
    Busy(DeliveryId),
    /// The delivery has had as many rounds of attempts as it can have.
    #[error("delivery {0} has had {MAX_ROUNDS} rounds of attempts and cannot be sent again")]
    TooManyRounds(DeliveryId),
    /// Owners have begun as many rounds of the delivery as they may on a day.
    #[error("delivery {id} was sent again {MAX_OWNER_ROUNDS_A_DAY} times today; try again in {seconds} seconds")]
    TooManyRoundsToday { id: DeliveryId, seconds: u32 },
    /// The endpoint has another host since the delivery was created, and no test has reached it yet.
    #[error("endpoint {0} has another host since then; send it a test, and try again once the test is delivered")]
    Unproven(EndpointId),
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// Older keys have to stay in the keyring, because this many endpoints cannot be read, or have a secret that does
    /// not open.
    #[error("the older keys are kept: {0} endpoints have a secret that could not be sealed under the current key")]
    KeysNeeded(usize),
    #[error("somebody else changed it at the same moment; check it and try again")]
    Changed,
    /// A secret or key cannot be made.
    #[error("the operating system returned no random bytes")]
    NoRandomness,
    /// The delivery is stored, but its message could not be sent. A sweep sends it.
    #[error("delivery {0} is stored and will be sent within minutes, because the queue did not accept it now: {1}")]
    Late(DeliveryId, StoreError),
}
