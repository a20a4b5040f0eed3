//! The events that the programs are given.

use admin::keys::NewKey;
use api::routes::ROUTES;
use serde_json::{Value, json};
use types::scope::{Scope, Tier};
use uuid::Uuid;

use crate::aws_side::AwsProcess;
use crate::market::{GeneratedMarket, variant_id};
use crate::output::text;

/// Makes the event for each program.
pub(super) struct Events {
    authorization: String,
    item: String,
    variant: String,
}

impl Events {
    /// Creates a key with every scope, for requests about the first item.
    pub(super) async fn new(aws: &AwsProcess, market: &GeneratedMarket) -> Result<Self, String> {
        let scopes = Scope::ALL.into_iter().collect();
        let user_id = Uuid::new_v4().into();
        let new = NewKey { user_id, name: None, tier: Tier::Business, limit_override: None, scopes, expires_at: None };
        let (key, _) = aws.admin()?.keys().create(new).await.map_err(text)?;
        let item = market.item_id(0).ok_or("the market is empty")?.to_string();
        Ok(Self { authorization: format!("Bearer {}", key.reveal()), item, variant: variant_id(0, 0).to_string() })
    }

    /// Returns the event for a program: a request on its route, a batch without messages, a
    /// command, or a tick of its schedule.
    pub(super) fn for_program(&self, program: &str) -> Value {
        match (ROUTES.iter().find(|route| route.function == program), program) {
            (Some(route), _) => self.request(route.path),
            (None, "ingest" | "webhook") => json!({ "Records": [] }),
            (None, "account") => {
                json!({ "version": 1, "user_id": Uuid::nil(), "command": "keys.list", "parameters": {} })
            }
            _ => json!({}),
        }
    }

    /// Returns a request as API Gateway hands it over (payload format 2.0).
    fn request(&self, route: &str) -> Value {
        let path = route.replace("{id}", &self.item).replace("{variant_id}", &self.variant);
        json!({
            "version": "2.0", "routeKey": format!("ANY {route}"), "rawPath": path, "rawQueryString": "",
            "headers": {"authorization": self.authorization, "accept": "*/*"},
            "pathParameters": {"id": self.item, "variant_id": self.variant}, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "123456789012", "apiId": "api", "domainName": "api.example.com", "domainPrefix": "api",
                "requestId": "bench", "routeKey": format!("ANY {route}"), "stage": "$default",
                "time": "20/Nov/2026:12:00:00 +0000", "timeEpoch": 1_795_176_000_000_u64,
                "http": {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1",
                    "userAgent": "bench"},
            },
        })
    }
}
