//! Stored and queued forms. During a deployment two releases run side by side, and after a rollback the older one finds
//! what the newer one has written. So no form changes by accident, a newer layout is refused by its name and never read as
//! if it were a known one, and what a newer release only adds is ignored.

mod scene;

use std::collections::BTreeMap;
use std::fs;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use common::records::{PublicItem, PublicListing};
use common::resources::Table;
use common::rows::Rows;
use common::store::{Row, StoreError};
use market::{Log, Record};
use serde_json::{Value, json};
use tests::{PATHS, Stack, assert_same, put, scan, uuid};
use webhooks::QueueMessage;
use webhooks::notice::disabled_notice_id;

use scene::{Scene, endpoint, user};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden.json");
/// If this variable is set, the golden file is written instead of compared.
const UPDATE_VARIABLE: &str = "UPDATE_GOLDEN";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_and_queued_has_the_form_of_the_golden_file() {
    let scene = Scene::new().await;
    let mut found = scene.stored().await;
    found.extend(scene.queued().await);
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        fs::write(GOLDEN, format!("{:#}\n", json!(found))).unwrap();
        return;
    }
    let golden = serde_json::from_str(&fs::read_to_string(GOLDEN).unwrap()).unwrap();
    assert_same(&found, &golden, "CONTRIBUTING.md says under \"Changing stored data\" how a form changes");
}

/// Changes every row of a stack.
async fn change_rows(stack: &Stack, change: impl Fn(&mut Row)) {
    for table in Table::ALL {
        for mut row in scan(stack, table).await {
            change(&mut row);
            put(stack, table, row).await;
        }
    }
}

fn error<T>(outcome: Result<T, StoreError>) -> String {
    outcome.map(drop).unwrap_err().to_string()
}

fn first_unreadable<T>(rows: &Rows<T>) -> String {
    rows.unreadable.first().unwrap().to_string()
}

async fn unread_log<R: Record>(stack: &Stack) -> String {
    error(stack.log::<R>().since(0).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_newer_layout_is_refused_by_its_name() {
    let queued = Scene::new().await.queued().await;
    for (name, mut message) in queued.into_iter().filter(|(name, _)| name.starts_with("Webhooks")) {
        message["layout"] = json!(255);
        let refused = QueueMessage::parse(&message.to_string()).unwrap_err().to_string();
        assert_eq!(refused, "unreadable message: delivery queue: layout 255, written by a newer release", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_a_newer_layout_is_refused_by_its_name() {
    let scene = Scene::new().await;
    let stack = &scene.stack;
    // Packed bytes begin with their layout.
    change_rows(stack, |row| {
        for name in ["changes", "data"] {
            if let Some(AttributeValue::B(packed)) = row.get_mut(name) {
                *packed = Blob::new([&[255], &packed.as_ref()[1..]].concat());
            }
        }
    })
    .await;
    let key = scene.key.as_str();
    assert_eq!(stack.instance().await.client.get(key, "/v1/public/orders").await.status, 500);
    let mut refused = vec![
        ("log entry of catalog", unread_log::<PublicItem>(stack).await),
        ("log entry of listings", unread_log::<PublicListing>(stack).await),
    ];
    let raise = |row: &mut Row| drop(row.insert("layout".to_owned(), AttributeValue::N("255".to_owned())));
    change_rows(stack, raise).await;
    let (stores, admin) = (stack.admin.stores(), stack.webhooks());
    let (market, store) = (&stores.market, &admin.store);
    refused.extend([
        ("stream head", error(Log::<PublicItem>::new(market.clone()).head().await)),
        ("entity", error(market.item(&"ak-47-redline".parse().unwrap()).await)),
        ("marketplace", first_unreadable(&market.marketplaces().await.unwrap())),
        ("quote", first_unreadable(&market.quotes(uuid(7).into()).await.unwrap())),
        ("balance", error(stores.accounts.balance(user()).await)),
        ("account's endpoints", error(store.endpoint(user(), endpoint()).await)),
        ("finder of an endpoint", error(store.owner_of(endpoint()).await)),
        ("delivery", error(store.delivery(uuid(0xd3).into()).await)),
        ("notice", error(store.unsent_notice(disabled_notice_id(uuid(0xe3).into(), 1)).await)),
        ("drain", error(store.drain(user()).await)),
        ("finder of a key", first_unreadable(&stack.admin.keys().list(user()).await.unwrap())),
    ]);
    for (format, text) in refused {
        assert!(text.ends_with(&format!("{format}: layout 255, written by a newer release")), "{format}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_newer_release_added_is_ignored() {
    let scene = Scene::new().await;
    let before = seen(&scene).await;
    change_rows(&scene.stack, |row| {
        for (name, value) in row.iter_mut() {
            add_members(name, value);
        }
        row.insert("added_later".to_owned(), AttributeValue::S("by a newer release".to_owned()));
    })
    .await;
    assert_same(&seen(&scene).await, &before, "with additions");
    for (name, message) in scene.queued().await.into_iter().filter(|(name, _)| name.starts_with("Webhooks")) {
        let read = |message: &Value| format!("{:?}", QueueMessage::parse(&message.to_string()).unwrap());
        let mut more = with_more_members(message.clone());
        // The body is not read, but sent byte for byte.
        if let Some(body) = message.get("body") {
            more["body"] = body.clone();
        }
        assert_eq!(read(&more), read(&message), "{name}");
    }
}

/// Adds members to the JSON objects in an attribute, and to an endpoint. The body of a delivery is not read, but sent byte
/// for byte.
fn add_members(name: &str, value: &mut AttributeValue) {
    match value {
        AttributeValue::S(text) if name != "body" => {
            if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                *text = with_more_members(json).to_string();
            }
        }
        AttributeValue::L(values) => values.iter_mut().for_each(|value| add_members(name, value)),
        AttributeValue::M(members) if name.starts_with("endpoint_") => {
            for (name, value) in &mut *members {
                add_members(name, value);
            }
            members.insert("added_later".to_owned(), AttributeValue::Bool(true));
        }
        _ => {}
    }
}

/// Returns a JSON value with a member more in each of its objects.
fn with_more_members(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, member)| (name, with_more_members(member)));
            members.chain([("added_later".to_owned(), json!({"by": "a newer release"}))]).collect()
        }
        Value::Array(values) => values.into_iter().map(with_more_members).collect(),
        scalar => scalar,
    }
}

/// Returns what a new instance and the libraries of `marketctl` show of the rows.
async fn seen(scene: &Scene) -> BTreeMap<String, Value> {
    let (stack, mut seen) = (&scene.stack, BTreeMap::new());
    let running = stack.instance().await;
    for (path, _) in PATHS.iter() {
        let reply = running.client.get(&scene.key, path).await;
        assert_eq!(reply.status, 200, "{path}: {:?}", reply.json());
        seen.insert(path.clone(), reply.json());
    }
    let (admin, keys) = (stack.webhooks(), stack.admin.keys());
    let endpoints = admin.list(user()).await.unwrap().readable;
    seen.insert("keys".to_owned(), json!(keys.list(user()).await.unwrap().readable));
    seen.insert("endpoints".to_owned(), json!(format!("{endpoints:?}")));
    for endpoint in endpoints.iter().map(|endpoint| endpoint.id).chain([uuid(0xe4).into()]) {
        let owner = admin.store.owner_of(endpoint).await.unwrap();
        let deliveries = format!("{owner:?} {:?}", stack.deliveries(endpoint).await);
        seen.insert(format!("deliveries of {endpoint}"), json!(deliveries));
    }
    for account in [user(), uuid(9).into()] {
        seen.insert(format!("drain of {account}"), json!(format!("{:?}", admin.store.drain(account).await.unwrap())));
    }
    seen
}
