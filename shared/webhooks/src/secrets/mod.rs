//! The secrets that sign deliveries: their text, how they are sealed, and the keyring that seals them.

mod keyring;
mod keyring_secret;
mod sealing;
mod secret;

pub use keyring::{Keyring, KeyringError};
pub use keyring_secret::{KeyringAccessError, KeyringCache, KeyringSecret, StoredKeyring};
pub use sealing::SealError;
pub use secret::{
    EndpointSecret, SecretError, has_standard_signature, is_service_signature, service_signature, standard_signature,
};

use aws_sdk_secretsmanager::Client;
use common::aws::{Environment, Patience};

/// Makes a client of Secrets Manager.
pub fn client(environment: &Environment, patience: Patience) -> Client {
    let mut config = aws_sdk_secretsmanager::config::Builder::from(&environment.config(patience));
    config.set_interceptors(environment.interceptors());
    Client::from_conf(config.build())
}
