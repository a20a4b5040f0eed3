//! Why something was not done, in words for the owner of an endpoint. None names a resolved address.

use thiserror::Error;

use platform::store::StoreError;
use secrets::KeyringUnavailable;
use types::ids::{DeliveryId, EndpointId};
use types::rotation::RotationError;
use webhooks::Unsent;
use webhooks::endpoint::MAX_ENDPOINTS;

/// Why something was not done. Nothing was changed then, unless the text says so.
#[derive(Clone, Debug, Error)]
pub enum WebhookAdminError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keyring is away, or has lost a key.
    #[error(transparent)]
    Keyring(#[from] KeyringUnavailable),
    /// What was asked for is not allowed.
    #[error("{field}: {reason}")]
    Invalid {
        /// The offending field.
        field: &'static str,
        /// The rule.
        reason: String,
    },
    /// The account is full.
    #[error("the account has {MAX_ENDPOINTS} endpoints already")]
    TooMany,
    /// There is no such endpoint, or no more.
    #[error("no endpoint has the id {0}")]
    UnknownEndpoint(EndpointId),
    /// There is no such delivery, or no more.
    #[error("no delivery has the id {0}; deliveries are kept for 35 days")]
    UnknownDelivery(DeliveryId),
    /// The endpoint is off.
    #[error("endpoint {0} is disabled")]
    Disabled(EndpointId),
    /// The delivery's endpoint is no more.
    #[error("endpoint {0} was removed")]
    Removed(EndpointId),
    /// An attempt is being made.
    #[error("an attempt of delivery {0} is being made right now")]
    Busy(DeliveryId),
    /// Secrets cannot be rotated now.
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// Older keys have to stay in the keyring.
    #[error("the older keys stay: {0} endpoints have a secret that is not sealed under the current key")]
    KeysNeeded(usize),
    /// Somebody else changed the same thing at the same moment.
    #[error("it was changed at the same moment; look at it and try again")]
    Changed,
    /// The system gives no randomness.
    #[error("no randomness for a secret")]
    NoRandomness,
    /// It is stored, but its message is not sent; it will be by itself.
    #[error("delivery {0} is stored and will be sent within minutes, for the queue did not take it now: {1}")]
    Late(DeliveryId, Unsent),
}
