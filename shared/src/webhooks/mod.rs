//! Webhooks: what is delivered, where it may connect, how a delivery is signed, and how none is lost.

pub mod admin;
pub mod delivery;
pub mod endpoint;
pub mod guard;
pub mod store;

mod body;
mod event;
mod fan_out;
mod keyring;
mod keyring_cache;
mod keyring_secret;
mod notices;
mod pace;
mod queues;
mod rotation;
mod sample;
mod schedule;
mod sealing;
mod secret;
mod signature;

pub use body::body;
pub use event::EventKind;
pub use fan_out::FanOut;
pub use keyring::{Keyring, KeyringError};
pub use keyring_cache::{KeyringCache, KeyringUnavailable};
pub use notices::Notices;
pub use queues::{Call, QueueMessage, Queues, Unsent};
pub use rotation::{DatedSecret, RotationError, Secrets};
pub use schedule::{ATTEMPTS, Schedule, Wait, delay_until, delivery_id};
pub use sealing::SealError;
pub use secret::{EndpointSecret, SecretError};
pub use signature::{service_signature, standard_signature};
