//! Tables as a restore may leave them: with some rows of the last transaction, and without others. A repair brings them
//! in line. Before it, no answer is wrong.

mod command;
mod crashes;
mod endpoints;
mod keys;
mod orders;
pub(crate) mod streams;

use std::collections::BTreeMap;
use std::sync::Arc;

use feed::Stores;
use platform::store::Row;
use repair::{Mode, Repair, RepairError, RepairReport};
use tests::{Stack, base_bucket, dynamodb};
use types::clock::Clock;

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

/// Returns the keys of the rows that a transaction has put or changed.
fn changed(before: &Rows, after: &Rows) -> Vec<[String; 2]> {
    after.iter().filter(|(key, row)| before.get(*key) != Some(row)).map(|(key, _)| key.clone()).collect()
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
