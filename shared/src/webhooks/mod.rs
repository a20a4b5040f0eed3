//! Webhook delivery without its I/O: where it may connect, and how a delivery is signed.

pub mod guard;
mod secret;
mod signature;

pub use secret::{EndpointSecret, SecretError};
pub use signature::{service_signature, standard_signature};
