//! What owners and operators are shown of a key that is more or less than its record, by `marketctl --json` and by the
//! account function.

use super::Rotated;
use api::auth::{KeyRecord, KeyStatus, KeyText, Usage};
use common::ids::{KeyId, UserId};
use common::timestamp::Timestamp;
use serde::Serialize;

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

/// A key with its use.
#[derive(Serialize)]
pub struct KeyWithUsage<'a> {
    #[serde(flatten)]
    pub record: &'a KeyRecord,
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

#[cfg(test)]
mod tests {
    use super::*;
    use api::auth::DayUse;
    use common::scope::{Scope, Tier};
    use serde_json::{Value, json};

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn key() -> (KeyText, KeyRecord) {
        let text = KeyText::from_bits([7; 32]);
        let record = KeyRecord {
            key_id: ID.parse().unwrap(),
            user_id: ID.parse().unwrap(),
            name: None,
            tier: Tier::Free,
            scopes: [Scope::CatalogRead].into(),
            limit: Tier::Free.limit(),
            limit_override: None,
            status: KeyStatus::Active,
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            last_used_at: None,
            last4: text.last4().to_owned(),
            replaced_by: None,
            revoked_at: None,
        };
        (text, record)
    }

    /// Returns the document of that key with these members besides.
    fn expected(others: &Value) -> Value {
        let mut expected = json!({
            "key_id": ID, "user_id": ID, "name": null, "tier": "free", "scopes": ["catalog:read"],
            "rate_limit_per_minute": Tier::Free.limit(), "status": "active", "created_at": "1970-01-01T00:00:00.000Z",
            "expires_at": null, "last_used_at": null, "last4": key().0.last4(),
            "replaced_by": null, "revoked_at": null,
        });
        for (name, value) in others.as_object().unwrap() {
            expected[name] = value.clone();
        }
        expected
    }

    #[test]
    fn the_document_is_the_record_and_the_text() {
        let (text, record) = key();
        let document = serde_json::to_value(KeyWithText::new(&text, &record)).unwrap();
        assert_eq!(document, expected(&json!({ "api_key": text.reveal() })));
    }

    #[test]
    fn a_rotation_shows_the_end_of_the_old_key_and_whether_it_is_known() {
        let (text, record) = key();
        let old_expires_at = Some(Timestamp::from_millis(60_000));
        let rotated = Rotated { text: text.clone(), record, old_expires_at, doubt: None };
        let document = serde_json::to_value(RotatedKey::new(ID.parse().unwrap(), &rotated)).unwrap();
        let others = json!({
            "api_key": text.reveal(), "old_key_id": ID, "old_expires_at": "1970-01-01T00:01:00.000Z", "in_doubt": false,
        });
        assert_eq!(document, expected(&others));
    }

    #[test]
    fn a_key_is_shown_with_its_use() {
        let day_use = DayUse { day: "2026-11-22".to_owned(), scope: Scope::CatalogRead, requests: 3 };
        let usage = Usage { days: vec![day_use] };
        let document = serde_json::to_value(KeyWithUsage { record: &key().1, usage: &usage }).unwrap();
        let days = json!([{ "day": "2026-11-22", "scope": "catalog:read", "requests": 3 }]);
        assert_eq!(document, expected(&json!({ "usage": { "days": days } })));
    }
}
