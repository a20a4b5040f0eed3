//! Webhook delivery without its I/O: what is delivered, where it may connect, and how a delivery is signed.

mod body;
mod event;
pub mod guard;
mod keyring;
mod rotation;
mod sample;
mod schedule;
mod sealing;
mod secret;
mod signature;

pub use body::body;
pub use event::EventKind;
pub use keyring::{Keyring, KeyringError};
pub use rotation::{DatedSecret, RotationError, Secrets};
pub use schedule::{ATTEMPTS, Schedule, Wait, delay_until, delivery_id};
pub use sealing::SealError;
pub use secret::{EndpointSecret, SecretError};
pub use signature::{service_signature, standard_signature};
