//! Webhook delivery without its I/O: where it may connect, and how a delivery is signed.

pub mod guard;
mod keyring;
mod rotation;
mod schedule;
mod sealing;
mod secret;
mod signature;

pub use keyring::{Keyring, KeyringError};
pub use rotation::{DatedSecret, RotationError, Secrets};
pub use schedule::{ATTEMPTS, Schedule, Wait, delay_until, delivery_id};
pub use sealing::SealError;
pub use secret::{EndpointSecret, SecretError};
pub use signature::{service_signature, standard_signature};
