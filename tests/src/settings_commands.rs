//! The commands of the account's settings.

use account::CommandName;
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
    pub const NAMELESS: [CommandName; 4] =
        [CommandName::KeysCreate, CommandName::KeysList, CommandName::EndpointsAdd, CommandName::EndpointsList];

    /// Makes a key, an endpoint with this URL, and a test delivery to it. `done` does a command and returns its result.
    pub async fn make(url: &str, mut done: impl AsyncFnMut(CommandName, Value) -> Value) -> Self {
        let key =
            done(CommandName::KeysCreate, json!({"name": "first", "scopes": ["catalog:read"]})).await["key_id"].take();
        let endpoint =
            done(CommandName::EndpointsAdd, json!({"url": url, "events": ["listing.sold"]})).await["id"].take();
        let delivery = done(CommandName::EndpointsTest, json!({"endpoint_id": endpoint})).await["delivery_id"].take();
        Self { key, endpoint, delivery }
    }

    /// Returns every command that names one of them, in an order in which each can be done.
    pub fn commands(&self) -> [(CommandName, Value); 18] {
        let Self { key, endpoint, delivery } = self;
        [
            (CommandName::KeysShow, json!({"key_id": key})),
            (CommandName::KeysRename, json!({"key_id": key, "name": "second"})),
            (CommandName::EndpointsShow, json!({"endpoint_id": endpoint})),
            (
                CommandName::EndpointsUpdate,
                json!({"endpoint_id": endpoint, "events": ["listing.sold", "order.completed"]}),
            ),
            (CommandName::EndpointsRotateSecret, json!({"endpoint_id": endpoint})),
            (CommandName::EndpointsRotateSecret, json!({"endpoint_id": endpoint, "activate": true})),
            (CommandName::EndpointsRotateSecret, json!({"endpoint_id": endpoint, "expire_old": true})),
            (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "limit": 10})),
            (CommandName::DeliveriesShow, json!({"delivery_id": delivery})),
            (CommandName::DeliveriesResend, json!({"delivery_id": delivery})),
            (CommandName::DeliveriesResendAll, json!({"endpoint_id": endpoint})),
            (CommandName::EndpointsTest, json!({"endpoint_id": endpoint, "event": "order.completed"})),
            (CommandName::EndpointsDisable, json!({"endpoint_id": endpoint})),
            (CommandName::EndpointsEnable, json!({"endpoint_id": endpoint})),
            (CommandName::KeysRotate, json!({"key_id": key, "overlap_seconds": 3_600})),
            (CommandName::KeysRevoke, json!({"key_id": key})),
            (CommandName::EndpointsRemove, json!({"endpoint_id": endpoint})),
            // The account of a removed endpoint is still known.
            (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "status": "failed"})),
        ]
    }
}
