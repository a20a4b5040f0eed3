//! Direct access to the tables, behind the service's back.

use api::auth::KeyText;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use common::aws::{Environment, Patience};
use common::resources::{Resources, Table};
use common::store::Row;
use local::environment::Variables;

use crate::stack::Stack;

/// Returns a DynamoDB client of a stack.
pub fn dynamodb(stack: &Stack) -> Client {
    let variables = Variables::new(&stack.aws.endpoint_url);
    Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Bulk)
}

/// Returns every row of a table.
pub async fn scan(stack: &Stack, table: Table) -> Vec<Row> {
    let name = Resources::new(Resources::DEFAULT_STACK).table(table);
    let pages = dynamodb(stack).scan().table_name(name).consistent_read(true).into_paginator().items().send();
    pages.try_collect().await.unwrap()
}

/// Puts a row into a table.
pub async fn put(stack: &Stack, table: Table, row: Row) {
    let name = Resources::new(Resources::DEFAULT_STACK).table(table);
    dynamodb(stack).put_item().table_name(name).set_item(Some(row)).send().await.unwrap();
}

/// Gives a key a limit of its own.
pub async fn set_limit(stack: &Stack, key: &str, limit: u32) {
    set_key_attribute(stack, key, "limit_override", AttributeValue::N(limit.to_string())).await;
}

/// Sets an attribute of a key's row.
pub async fn set_key_attribute(stack: &Stack, key: &str, attribute: &str, value: AttributeValue) {
    let update = update_row(stack, Table::Keys, [&key_partition(key), "key"]).update_expression("SET #name = :value");
    update
        .expression_attribute_names("#name", attribute)
        .expression_attribute_values(":value", value)
        .send()
        .await
        .unwrap();
}

/// Replaces a key's attribute by this text.
pub async fn set_key_text(stack: &Stack, key: &str, attribute: &str, text: &str) {
    set_text(stack, Table::Keys, [&key_partition(key), "key"], attribute, text).await;
}

/// Removes an attribute of a key's row.
pub async fn remove_key_attribute(stack: &Stack, key: &str, attribute: &str) {
    let update = update_row(stack, Table::Keys, [&key_partition(key), "key"]).update_expression("REMOVE #name");
    let update = update.expression_attribute_names("#name", attribute).condition_expression("attribute_exists(#name)");
    update.send().await.unwrap();
}

/// Returns a key's row.
pub async fn stored_key_row(stack: &Stack, key: &str) -> Row {
    stored_row(stack, Table::Keys, [&key_partition(key), "key"]).await
}

/// Returns a row.
pub async fn stored_row(stack: &Stack, table: Table, [pk, sk]: [&str; 2]) -> Row {
    let table = Resources::new(Resources::DEFAULT_STACK).table(table);
    let get = dynamodb(stack).get_item().table_name(table).key("pk", s(pk)).key("sk", s(sk));
    get.consistent_read(true).send().await.unwrap().item.unwrap()
}

/// Replaces an attribute of a row by this text, as a release that knows more words may write it. In `path`, a dot
/// stands between an attribute and its member.
pub async fn set_text(stack: &Stack, table: Table, key: [&str; 2], path: &str, text: &str) {
    let mut update = update_row(stack, table, key);
    let mut names = Vec::new();
    for (depth, name) in path.split('.').enumerate() {
        names.push(format!("#name{depth}"));
        update = update.expression_attribute_names(format!("#name{depth}"), name);
    }
    let path = names.join(".");
    let update = update.update_expression(format!("SET {path} = :text")).expression_attribute_values(":text", s(text));
    update.condition_expression(format!("attribute_exists({path})")).send().await.unwrap();
}

/// Sets an attribute of a row that is there to this number.
pub async fn set_row_number(stack: &Stack, table: Table, key: [&str; 2], attribute: &str, number: u32) {
    let update = update_row(stack, table, key).update_expression("SET #name = :number");
    let update = update.expression_attribute_names("#name", attribute);
    let update = update.expression_attribute_values(":number", AttributeValue::N(number.to_string()));
    update.condition_expression("attribute_exists(pk)").send().await.unwrap();
}

fn update_row(stack: &Stack, table: Table, [pk, sk]: [&str; 2]) -> UpdateItemFluentBuilder {
    let table = Resources::new(Resources::DEFAULT_STACK).table(table);
    dynamodb(stack).update_item().table_name(table).key("pk", s(pk)).key("sk", s(sk))
}

/// Creates a table that lacks the indexes of the template.
pub async fn table_without_indexes(stack: &Stack, name: &str) {
    let mut request = dynamodb(stack).create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (key, kind) in [("pk", KeyType::Hash), ("sk", KeyType::Range)] {
        let definition = AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name(key).key_type(kind);
        request = request.attribute_definitions(definition.build().unwrap()).key_schema(element.build().unwrap());
    }
    request.send().await.unwrap();
}

/// Restores a table to the present moment under another name.
pub async fn restore_table(stack: &Stack, source: &str, target: &str) {
    let restore = dynamodb(stack).restore_table_to_point_in_time().source_table_name(source).target_table_name(target);
    restore.use_latest_restorable_time(true).send().await.unwrap();
}

/// Returns how many counters a key's row holds, and its size in bytes as DynamoDB counts it.
pub async fn key_item_size(stack: &Stack, key: &str) -> (usize, usize) {
    let item = stored_key_row(stack, key).await;
    let is_counter = |name: &&String| {
        name.strip_prefix('u').is_some_and(|rest| rest.len() > 1 && rest[1..].bytes().all(|b| b.is_ascii_digit()))
    };
    let size = item.iter().map(|(name, value)| name.len() + value_size(value)).sum();
    (item.keys().filter(is_counter).count(), size)
}

/// Returns a value's size in bytes as DynamoDB documents it: the length of text and bytes; for numbers one byte per
/// two digits, and one more.
fn value_size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 1,
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        other => panic!("unexpected attribute {other:?}"),
    }
}

fn key_partition(key: &str) -> String {
    format!("key#{}", KeyText::parse(key).unwrap().hash().hex())
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
