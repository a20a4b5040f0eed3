//! What owners and operators are shown of a key that is more or less than its record, by `marketctl --json` and by the
//! account function.

use super::Rotated;
use api::auth::{KeyRecord, KeyStatus, KeyText, Usage};
use common::ids::{KeyId, UserId};
use common::timestamp::Timestamp;
use serde::Serialize;

/// A key as an operator is shown it.
#[derive(Serialize)]
pub struct KeyDocument<'a> {
    #[serde(flatten)]
    pub record: &'a KeyRecord,
    /// Whether a request with this key is accepted. An expired key is not, although its status is active.
    pub accepted: bool,
}

/// A key in the list of all keys.
#[derive(Serialize)]
pub struct UsedKey<'a> {
    #[serde(flatten)]
    pub key: KeyDocument<'a>,
    /// The requests of today, in UTC, that took a token.
    pub requests_today: u64,
}

/// The key of a leaked text, and the others if it has several.
#[derive(Serialize)]
pub struct IdentifiedKeys<'a> {
    #[serde(flatten)]
    pub first: KeyDocument<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<KeyDocument<'a>>,
}

/// A new key with its text, which is shown only once.
#[derive(Serialize)]
pub struct KeyWithText<'a> {
    #[serde(flatten)]
    pub record: &'a KeyRecord,
    pub api_key: &'a str,
}

/// A new key with its text, and what became of the key that it replaces.
#[derive(Serialize)]
pub struct RotatedKey<'a> {
    #[serde(flatten)]
    pub key: KeyWithText<'a>,
    pub old_key_id: KeyId,
    /// Until when the old key is accepted, or `null` if it was revoked at once.
    pub old_expires_at: Option<Timestamp>,
    /// True if no answer told whether the rotation was made.
    pub in_doubt: bool,
}

/// A key with its use: its record for its owner, a [`KeyDocument`] for an operator.
#[derive(Serialize)]
pub struct KeyWithUsage<'a, K> {
    #[serde(flatten)]
    pub key: K,
    pub usage: &'a Usage,
}

/// A key that was revoked although its row cannot be read: what is known of it.
#[derive(Serialize)]
pub struct RevokedKey {
    pub key_id: KeyId,
    status: KeyStatus,
}

/// What was revoked of a user.
#[derive(Serialize)]
pub struct RevokedKeys {
    pub user_id: UserId,
    /// The keys that were not revoked before.
    pub revoked: Vec<KeyId>,
}

impl<'a> KeyDocument<'a> {
    /// Returns the document as it is shown at this time.
    pub fn new(record: &'a KeyRecord, now: Timestamp) -> Self {
        Self { record, accepted: record.is_live(now) }
    }
}

impl<'a> KeyWithText<'a> {
    pub fn new(text: &'a KeyText, record: &'a KeyRecord) -> Self {
        Self { record, api_key: text.reveal() }
    }
}

impl<'a> RotatedKey<'a> {
    pub fn new(old_key_id: KeyId, rotated: &'a Rotated) -> Self {
        let Rotated { text, record, old_expires_at, doubt } = rotated;
        let key = KeyWithText::new(text, record);
        Self { key, old_key_id, old_expires_at: *old_expires_at, in_doubt: doubt.is_some() }
    }
}

impl RevokedKey {
    pub fn new(key_id: KeyId) -> Self {
        Self { key_id, status: KeyStatus::Revoked }
    }
}
