//! The commands of the account's settings.

use serde_json::{Value, json};

/// The ids of a user's key, endpoint and delivery, which commands name.
#[derive(Debug, Default)]
pub struct SettingsIds {
    pub key: Value,
    pub endpoint: Value,
    pub delivery: Value,
}

impl SettingsIds {
    /// The commands that name none of them.
    pub const NAMELESS: [&str; 4] = ["keys.create", "keys.list", "endpoints.add", "endpoints.list"];

    /// Makes a key, an endpoint with this URL, and a test delivery to it. `done` does a command and returns its result.
    pub async fn make(url: &str, done: impl AsyncFn(&'static str, Value) -> Value) -> Self {
        let key = done("keys.create", json!({"name": "first", "scopes": ["catalog:read"]})).await["key_id"].take();
        let endpoint = done("endpoints.add", json!({"url": url, "events": ["listing.sold"]})).await["id"].take();
        let delivery = done("endpoints.test", json!({"endpoint_id": endpoint})).await["delivery_id"].take();
        Self { key, endpoint, delivery }
    }

    /// Returns every command that names one of them, in an order in which each can be done.
    pub fn commands(&self) -> [(&'static str, Value); 15] {
        let Self { key, endpoint, delivery } = self;
        [
            ("keys.show", json!({"key_id": key})),
            ("keys.rename", json!({"key_id": key, "name": "second"})),
            ("endpoints.update", json!({"endpoint_id": endpoint, "events": ["listing.sold", "order.completed"]})),
            ("endpoints.rotate_secret", json!({"endpoint_id": endpoint})),
            ("endpoints.rotate_secret", json!({"endpoint_id": endpoint, "activate": true})),
            ("deliveries.list", json!({"endpoint_id": endpoint, "limit": 10})),
            ("deliveries.show", json!({"delivery_id": delivery})),
            ("deliveries.resend", json!({"delivery_id": delivery})),
            ("endpoints.test", json!({"endpoint_id": endpoint, "event": "order.completed"})),
            ("endpoints.disable", json!({"endpoint_id": endpoint})),
            ("endpoints.enable", json!({"endpoint_id": endpoint})),
            ("keys.rotate", json!({"key_id": key, "overlap_seconds": 3_600})),
            ("keys.revoke", json!({"key_id": key})),
            ("endpoints.remove", json!({"endpoint_id": endpoint})),
            // The account of a removed endpoint is still known.
            ("deliveries.list", json!({"endpoint_id": endpoint, "status": "failed"})),
        ]
    }
}
