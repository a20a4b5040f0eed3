//! What is shown of a key that is more or less than its record.

use auth::{KeyRecord, KeyStatus, KeyText};
use serde::Serialize;
use types::ids::KeyId;

/// A new key with its text, which is shown only once.
#[derive(Serialize)]
pub(super) struct KeyWithText<'a> {
    #[serde(flatten)]
    pub(super) record: &'a KeyRecord,
    pub(super) api_key: &'a str,
}

impl<'a> KeyWithText<'a> {
    pub(super) fn new((text, record): &'a (KeyText, KeyRecord)) -> Self {
        Self { record, api_key: text.reveal() }
    }
}

/// A key that was revoked although its row cannot be read: what is known of it.
#[derive(Serialize)]
pub(super) struct RevokedKey {
    pub(super) key_id: KeyId,
    status: KeyStatus,
}

impl RevokedKey {
    pub(super) fn new(key_id: KeyId) -> Self {
        Self { key_id, status: KeyStatus::Revoked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use types::scope::{Scope, Tier};
    use types::timestamp::Timestamp;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    #[test]
    fn the_document_is_the_record_and_the_text() {
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
        };
        let expected = json!({
            "key_id": ID, "user_id": ID, "name": null, "tier": "free", "scopes": ["catalog:read"],
            "rate_limit_per_minute": Tier::Free.limit(), "status": "active", "created_at": "1970-01-01T00:00:00.000Z",
            "expires_at": null, "last_used_at": null, "last4": text.last4(), "api_key": text.reveal(),
        });
        let key = (text, record);
        assert_eq!(serde_json::to_value(KeyWithText::new(&key)).unwrap(), expected);
    }
}
