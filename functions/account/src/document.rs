//! What an owner is shown of keys, and lists. What is shown of endpoints and deliveries stands in `admin`.

use std::str::FromStr;

use admin::webhooks::document::{DeliveryRow, EndpointDocument};
use auth::{KeyRecord, KeyStatus, Usage};
use platform::rows::Unreadable;
use serde::Serialize;
use types::ids::{DeliveryId, EndpointId, KeyId};
use types::timestamp::Timestamp;

/// A new key with its text, which is shown only once.
#[derive(Serialize)]
pub(crate) struct KeyWithText<'a> {
    #[serde(flatten)]
    pub(crate) record: &'a KeyRecord,
    pub(crate) api_key: &'a str,
}

/// A key that replaces another one.
#[derive(Serialize)]
pub(crate) struct RotatedKey<'a> {
    #[serde(flatten)]
    pub(crate) key: KeyWithText<'a>,
    pub(crate) old_key_id: KeyId,
    /// Until when the old key is accepted, or `null` if it was revoked at once.
    pub(crate) old_expires_at: Option<Timestamp>,
    /// Whether no answer told that the rotation was made. Then the list of keys tells.
    pub(crate) in_doubt: bool,
}

/// A key, and how it was used.
#[derive(Serialize)]
pub(crate) struct KeyWithUsage<'a> {
    #[serde(flatten)]
    pub(crate) record: &'a KeyRecord,
    pub(crate) usage: &'a Usage,
}

/// A key that was revoked although its row cannot be read.
#[derive(Serialize)]
pub(crate) struct RevokedKey {
    pub(crate) key_id: KeyId,
    pub(crate) status: KeyStatus,
}

/// A user's keys, and the ids of those that cannot be read.
#[derive(Serialize)]
pub(crate) struct KeyList {
    pub(crate) keys: Vec<KeyRecord>,
    pub(crate) unreadable: Vec<KeyId>,
}

#[derive(Serialize)]
pub(crate) struct EndpointList<'a> {
    pub(crate) endpoints: Vec<EndpointDocument<'a>>,
    pub(crate) unreadable: Vec<EndpointId>,
}

#[derive(Serialize)]
pub(crate) struct DeliveryList {
    pub(crate) deliveries: Vec<DeliveryRow>,
    pub(crate) unreadable: Vec<DeliveryId>,
    /// Where the next page begins, or `null` if this is the last one.
    pub(crate) cursor: Option<String>,
}

/// Returns the ids of rows that cannot be read. The last id in a row's key is its own.
pub(crate) fn ids<T: FromStr>(unreadable: &[Unreadable]) -> Vec<T> {
    let id = |row: &Unreadable| row.row.rsplit([' ', '#']).find_map(|part| part.parse().ok());
    unreadable.iter().filter_map(id).collect()
}
