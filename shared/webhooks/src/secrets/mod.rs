//! The secrets that sign deliveries: their text, how they are sealed, and the keyring that seals them.

mod access_error;
mod keyring;
mod keyring_cache;
mod keyring_secret;
mod sealing;
mod secret;
mod signature;

pub use access_error::KeyringAccessError;
pub use keyring::{Keyring, KeyringError};
pub use keyring_cache::KeyringCache;
pub use keyring_secret::{KeyringSecret, StoredKeyring};
pub use sealing::SealError;
pub use secret::{EndpointSecret, SecretError};
pub use signature::{service_signature, standard_signature};

use aws_sdk_secretsmanager::Client;
use common::aws::{Environment, Patience};

/// Makes a client of Secrets Manager.
pub fn client(environment: &Environment, patience: Patience) -> Client {
    let mut config = aws_sdk_secretsmanager::config::Builder::from(&environment.config(patience));
    config.set_interceptors(environment.interceptors());
    Client::from_conf(config.build())
}
