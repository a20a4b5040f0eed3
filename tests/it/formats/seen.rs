//! What a stack shows of its rows: over HTTP, and through the libraries of `marketctl`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::{Stack, uuid};

use super::scene::user;

const PATHS: [&str; 10] = [
    "/v1/public/me",
    "/v1/public/catalog",
    "/v1/public/items/ak-47-redline",
    "/v1/public/items/gone",
    "/v1/public/prices/00000000-0000-0000-0000-000000000007",
    "/v1/public/marketplaces",
    "/v1/public/listings",
    "/v1/public/orders",
    "/v1/public/orders?page=2&page_size=1",
    "/v1/public/wallet/balance",
];

/// Returns all that can be seen, by what was asked for.
pub(super) async fn seen(stack: &Stack, key: &str) -> BTreeMap<String, Value> {
    let (running, mut seen) = (stack.instance().await, BTreeMap::new());
    for path in PATHS {
        let reply = running.client.get(key, path).await;
        assert_eq!(reply.status, if path.ends_with("gone") { 404 } else { 200 }, "{path}: {:?}", reply.json());
        seen.insert(path.to_owned(), reply.json());
    }
    seen.insert("keys".to_owned(), json!(stack.admin.keys().list(user()).await.unwrap().readable));
    let admin = stack.webhooks();
    for endpoint in admin.list(user()).await.unwrap().readable {
        let shown = json!({
            "url": endpoint.url, "events": endpoint.events, "switch": format!("{:?}", endpoint.switch),
            "epoch": endpoint.epoch, "created_at": endpoint.created_at, "secrets": endpoint.secrets,
            "secret_version": endpoint.secret_version, "is_prompt": endpoint.is_prompt,
            "warning": format!("{:?}", endpoint.warning),
            "deliveries": format!("{:?}", stack.deliveries(endpoint.id).await),
        });
        seen.insert(format!("endpoint {}", endpoint.id), shown);
    }
    let removed = uuid(0xe4).into();
    seen.insert("removed endpoint".to_owned(), json!(admin.store.owner_of(removed).await.unwrap()));
    seen.insert("its deliveries".to_owned(), json!(format!("{:?}", stack.deliveries(removed).await)));
    for account in [user(), uuid(9).into()] {
        let drain = admin.store.drain(account).await.unwrap();
        seen.insert(format!("drain {account}"), json!(format!("{drain:?}")));
    }
    seen
}
