//! Tables as a restore may leave them: with some rows of the last transaction, and without others. A repair brings them
//! in line. Before it, no answer is wrong. The tests here run `marketctl repair`.

mod crashes;
pub(crate) mod endpoints;
mod keys;
mod orders;
pub(crate) mod streams;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::auth::KeyText;
use common::clock::Clock;
use common::resources::{TTL, Table};
use common::scope::Scope;
use common::store::Row;
use feed::Stores;
use local::environment::Variables;
use marketctl::repair::{Mode, Repair, RepairError, RepairReport};
use serde_json::{Value, json};
use tests::{
    Program, Stack, audited_marketctl, balance, base_bucket, dynamodb, item, listing, marketctl, marketplace, order,
    set_row_number, uuid,
};

/// The rows of a table by their keys.
pub(crate) type Rows = BTreeMap<[String; 2], Row>;

pub(crate) async fn rows(stack: &Stack, table: &str) -> Rows {
    let mut pages = dynamodb(stack).scan().table_name(table).consistent_read(true).into_paginator().items().send();
    let mut rows = Rows::new();
    while let Some(row) = pages.next().await {
        let row = row.unwrap();
        rows.insert(["pk", "sk"].map(|name| row[name].as_s().unwrap().clone()), row);
    }
    rows
}

/// Returns the keys of the rows that a transaction has put or changed. When a row is removed, and who makes the next key,
/// is nothing that a repair looks at.
fn changed(before: &Rows, after: &Rows) -> Vec<[String; 2]> {
    let without_ttl = |row: &Row| row.clone().into_iter().filter(|(name, _)| name != TTL).collect::<Row>();
    let is_changed = |key: &[String; 2], row| before.get(key).map(without_ttl) != Some(without_ttl(row));
    let rows = after.iter().filter(|(key, row)| !key[0].starts_with("turn#") && is_changed(key, row));
    rows.map(|(key, _)| key.clone()).collect()
}

/// Makes a row what it was before a transaction.
async fn put_back(stack: &Stack, table: &str, before: &Rows, key: &[String; 2]) {
    let client = dynamodb(stack);
    if let Some(row) = before.get(key) {
        client.put_item().table_name(table).set_item(Some(row.clone())).send().await.unwrap();
    } else {
        delete(stack, table, key).await;
    }
}

/// Makes a table what it was before.
async fn put_all_back(stack: &Stack, table: &str, before: &Rows) {
    let now = rows(stack, table).await;
    let gone = now.keys().filter(|key| !before.contains_key(*key)).cloned();
    for key in changed(&now, before).into_iter().chain(gone) {
        put_back(stack, table, before, &key).await;
    }
}

async fn delete(stack: &Stack, table: &str, [pk, sk]: &[String; 2]) {
    let text = |text: &String| aws_sdk_dynamodb::types::AttributeValue::S(text.clone());
    let delete = dynamodb(stack).delete_item().table_name(table).key("pk", text(pk)).key("sk", text(sk));
    delete.send().await.unwrap();
}

/// Repairs public data and orders through these stores.
async fn repair_through(stack: &Stack, stores: Stores, mode: Mode) -> Result<RepairReport, RepairError> {
    let market = Some((stores.market, base_bucket(&stack.aws.endpoint_url)));
    let (accounts, clock): (_, Arc<dyn Clock>) = (Some(stores.accounts), stack.clock.clone());
    Repair { market, accounts, keys: None, webhooks: None, clock, mode }.run(&|_| {}).await
}

const AT: &str = "2026-11-20T10:00:00Z";

async fn run(stack: &Stack, arguments: &[&str]) -> Program {
    marketctl(&Variables::new(&stack.aws.endpoint_url), &[&["--json", "repair"][..], arguments].concat(), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_says_what_it_found_and_what_it_did() {
    let (stack, user) = (Stack::new().await, uuid(1_000).into());
    stack.feed(&[listing(1, "1.00", AT, 1), order(user, 1, AT, 1), order(user, 2, AT, 1)]).await;
    let first = run(&stack, &[]).await;
    assert_eq!((first.code, &first.json()["streams"][1]["base_unusable"]), (0, &json!(true)), "{first:?}");
    assert_eq!(run(&stack, &[]).await.json()["in_line"], true);

    stack.feed(&[listing(2, "1.00", AT, 1)]).await;
    let newest = rows(&stack, streams::TABLE).await.into_keys().filter(|[pk, _]| pk == "log#listings#0").max();
    delete(&stack, streams::TABLE, &newest.unwrap()).await;
    delete(&stack, orders::TABLE, &[format!("order#{}", uuid(1)), "authority".to_owned()]).await;
    let before = rows(&stack, streams::TABLE).await;
    let looked = run(&stack, &["--dry-run"]).await;
    assert_eq!(looked.code, 1, "{looked:?}");
    let looked = looked.json();
    assert_eq!(rows(&stack, streams::TABLE).await, before);
    assert_eq!((&looked["in_line"], &looked["dry_run"]), (&json!(false), &json!(true)), "{looked}");
    assert_eq!(looked["orders"]["orders_without_authority"], 1);
    assert_eq!(looked["streams"][1]["began_at"], Value::Null);
    let affected = json!([{"table": "accounts", "id": user, "send_again": "orders"}]);
    assert_eq!(looked["affected"], affected, "{looked}");
    let repaired = run(&stack, &[]).await.json();
    assert_eq!(repaired["orders"], looked["orders"]);
    assert!(repaired["streams"][1]["began_at"].is_u64(), "{repaired}");
    assert_eq!(repaired["streams"][1]["base_records"], 2);
    assert_eq!(run(&stack, &[]).await.json()["in_line"], true);

    let orders_only = run(&stack, &["--table", "accounts", "--restored"]).await.json();
    assert_eq!((&orders_only["streams"], &orders_only["orders"]["users"]), (&json!([]), &json!(1)));
    assert_eq!((&orders_only["examined"], &orders_only["keys"]), (&json!(["accounts"]), &Value::Null));
    tests::table_without_indexes(&stack, "bare-keys").await;
    let away = run(&stack, &["--table", "market", "--stack", "bare"]).await;
    assert_eq!(away.code, 1, "{away:?}");
    assert!(away.stderr.contains("the repair ended early"), "{away:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_names_keys_and_endpoints_and_shows_no_secret() {
    let (stack, user) = (Stack::new().await, uuid(1_000).into());
    let (text, record) = stack.key_of(user, &Scope::ALL).await;
    let (endpoint, _) = stack.endpoint(user, "http://127.0.0.1:9/hook").await;
    delete(&stack, keys::TABLE, &[format!("id#{}", record.key_id), "hash".to_owned()]).await;
    delete(&stack, endpoints::TABLE, &[format!("endpoint#{}", endpoint.id), "account".to_owned()]).await;
    let key = json!({ "problem": "not_findable", "key_id": record.key_id, "user_id": user });
    let one = json!({ "problem": "not_findable", "endpoint_id": endpoint.id, "user_id": user });
    let webhooks = json!({ "endpoints": 1, "found": [one], "deliveries_without_wake_up": 0 });
    for (table, found) in [("keys", json!({ "keys": 1, "found": [key] })), ("webhooks", webhooks)] {
        let variables = Variables::new(&stack.aws.endpoint_url);
        let (repaired, audit) = audited_marketctl(&variables, &["--json", "repair", "--table", table], "").await;
        assert_eq!((repaired.code, &repaired.json()[table]), (0, &found), "{repaired:?}");
        let [line] = audit.as_slice() else { panic!("{audit:?}") };
        assert_eq!((&line["command"], &line["user_id"]), (&json!("repair"), &json!(user)), "{line}");
        let hash = KeyText::parse(&text).unwrap().hash().hex();
        assert!(!repaired.stdout.contains(&text) && !repaired.stdout.contains(&hash));
        assert_eq!(run(&stack, &["--table", table]).await.json()["in_line"], true);
    }
    let variables = Variables::new(&stack.aws.endpoint_url);
    let for_people = marketctl(&variables, &["repair", "--dry-run", "--table", "keys"], "").await;
    let said = "Examined: keys (keys: 1). Not examined: market, accounts, webhooks. Everything there is in line.";
    assert_eq!(for_people.stdout.trim(), said, "{for_people:?}");
}

/// A repetition would find no more of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_ends_early_tells_what_it_has_changed() {
    let stack = Stack::new().await;
    let (_, key) = stack.key_of(uuid(1_000).into(), &Scope::ALL).await;
    delete(&stack, keys::TABLE, &[format!("id#{}", key.key_id), "hash".to_owned()]).await;
    dynamodb(&stack).delete_table().table_name(endpoints::TABLE).send().await.unwrap();
    let variables = Variables::new(&stack.aws.endpoint_url);
    let (ended, audit) = audited_marketctl(&variables, &["--json", "repair"], "").await;
    assert!(ended.code == 1 && ended.stderr.contains("the repair ended early"), "{ended:?}");
    let document = ended.json();
    assert_eq!(document["keys"]["found"][0]["key_id"], json!(key.key_id), "{document}");
    assert_eq!((&document["webhooks"], &document["not_examined"]), (&Value::Null, &json!(["webhooks"])));
    let [line] = audit.as_slice() else { panic!("{audit:?}") };
    assert_eq!((&line["command"], &line["key_id"]), (&json!("repair"), &json!(key.key_id)), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_no_message_reaches_is_reset() {
    const FROZEN: u64 = i64::MAX.cast_unsigned();
    let (stack, user) = (Stack::new().await, uuid(1_000).into());
    let messages = |version: u64| {
        [
            item("a", "skin", None, version),
            listing(1, "1.00", AT, version),
            marketplace("one", true, version),
            order(user, 1, AT, version),
            balance(user, "1.00", "2.00", "3.00", version),
        ]
    };
    stack.feed(&messages(FROZEN)).await;
    let (one, account) = (uuid(1).to_string(), user.to_string());
    let (one, account) = (one.as_str(), account.as_str());
    for [kind, id] in [["item", "a"], ["listing", one], ["marketplace", "one"], ["order", one], ["balance", account]] {
        let reset = run(&stack, &["--reset-version", kind, id]).await;
        assert_eq!(reset.json(), json!({ "entity": format!("{kind} {id}"), "version": FROZEN }), "{reset:?}");
        let missing = if kind == "item" { "b" } else { id };
        let again = run(&stack, &["--reset-version", kind, missing]).await;
        assert_eq!(again.code, i32::from(kind == "item"), "{again:?}");
    }
    stack.feed(&messages(7)).await;
    assert!(run(&stack, &["--reset-version", "quote", one]).await.stderr.contains("is not one of item"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_beyond_those_of_messages_is_reset_too() {
    let stack = Stack::new().await;
    stack.feed(&[marketplace("one", true, 1)]).await;
    set_row_number(&stack, Table::Market, ["marketplaces", "one"], "version", u32::MAX).await;
    let reset = run(&stack, &["--reset-version", "marketplace", "one"]).await;
    assert_eq!(reset.json()["version"], u32::MAX);
    stack.feed(&[marketplace("one", false, 1)]).await;
}
