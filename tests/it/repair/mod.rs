//! Tables as a restore may leave them: with some rows of the last transaction, and without others. A repair brings them
//! in line. Before it, no answer is wrong.

mod crashes;
pub(crate) mod endpoints;
mod keys;
mod orders;
mod pointer;
mod streams;

use std::collections::BTreeMap;

use common::resources::{TTL, Table};
use common::store::Row;
use feed::Stores;
use local::environment::Variables;
use marketctl::repair::{Repair, RepairError, Repaired};
use serde_json::json;
use tests::{
    Program, Stack, balance, base_bucket, dynamodb, item, listing, marketctl, marketplace, order, set_row_number, uuid,
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

/// Repairs the market through these stores.
async fn repair_market(stack: &Stack, stores: Stores) -> Result<Repaired, RepairError> {
    let mut repair = Repair::new(stack.clock.clone(), false);
    repair.market(&stores.market, &base_bucket(&stack.aws.endpoint_url)).await.map(|()| repair.done)
}

/// Repairs orders through these stores.
async fn repair_orders(stack: &Stack, stores: Stores) -> Result<Repaired, RepairError> {
    let mut repair = Repair::new(stack.clock.clone(), false);
    repair.accounts(&stores.accounts).await.map(|()| repair.done)
}

const AT: &str = "2026-11-20T10:00:00Z";

async fn run(stack: &Stack, arguments: &[&str]) -> Program {
    marketctl(&Variables::new(&stack.aws.endpoint_url), &[&["--json", "repair"][..], arguments].concat(), "").await
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
