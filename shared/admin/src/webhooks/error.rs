//! Errors in words for the owner of an endpoint. No text names a resolved address (specification 6.12.6).

use thiserror::Error;

use common::ids::{DeliveryId, EndpointId};
use common::rotation::RotationError;
use common::store::StoreError;
use webhooks::delivery::MAX_ROUNDS;
use webhooks::endpoint::{MAX_ENDPOINTS, MAX_TRIALS_A_MINUTE};
use webhooks::secrets::KeyringAccessError;

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
    /// The endpoint was tested, or got another URL, as often as it may in a minute.
    #[error(
        "an endpoint is tested and gets another URL at most {MAX_TRIALS_A_MINUTE} times in a minute; try again in {seconds} seconds"
    )]
    TooManyTrials { seconds: u32 },
    /// An attempt is being made, so no new round can begin.
    #[error("an attempt of delivery {0} is being made right now")]
    Busy(DeliveryId),
    /// The delivery has had as many rounds of attempts as it can have.
    #[error("delivery {0} has had {MAX_ROUNDS} rounds of attempts and cannot be sent again")]
    TooManyRounds(DeliveryId),
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
