//! Rows as DynamoDB's own JSON, in which golden files keep them.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::store::Row;
use serde_json::{Value, json};
use tests::{Stack, dynamodb};

/// Returns every row of a table, in the order of their keys.
pub(super) async fn scan(stack: &Stack, table: &str) -> Vec<Value> {
    let mut pages = dynamodb(stack).scan().table_name(table).consistent_read(true).into_paginator().items().send();
    let mut rows = Vec::new();
    while let Some(row) = pages.next().await {
        rows.push(to_json(&AttributeValue::M(row.unwrap()))["M"].take());
    }
    rows.sort_by_key(|row| (text(row, "pk").to_owned(), text(row, "sk").to_owned()));
    rows
}

/// Puts a row into a table.
pub(super) async fn put(stack: &Stack, table: &str, row: &Value) {
    let row: Row = row.as_object().unwrap().iter().map(|(name, value)| (name.clone(), from_json(value))).collect();
    dynamodb(stack).put_item().table_name(table).set_item(Some(row)).send().await.unwrap();
}

/// Returns a string attribute of a row.
pub(super) fn text<'r>(row: &'r Value, name: &str) -> &'r str {
    row[name]["S"].as_str().unwrap()
}

/// Returns a binary attribute of a row.
pub(super) fn bytes(row: &Value, name: &str) -> Vec<u8> {
    STANDARD.decode(row[name]["B"].as_str().unwrap()).unwrap()
}

/// Makes a binary attribute.
pub(super) fn binary(bytes: &[u8]) -> Value {
    json!({"B": STANDARD.encode(bytes)})
}

fn to_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::B(bytes) => binary(bytes.as_ref()),
        AttributeValue::Bool(bool) => json!({"BOOL": bool}),
        AttributeValue::Ss(texts) => {
            let mut texts = texts.clone();
            texts.sort();
            json!({"SS": texts})
        }
        AttributeValue::L(values) => json!({"L": values.iter().map(to_json).collect::<Vec<_>>()}),
        AttributeValue::M(values) => {
            let members = values.iter().map(|(name, value)| (name.clone(), to_json(value)));
            json!({"M": members.collect::<serde_json::Map<_, _>>()})
        }
        other => panic!("unexpected attribute {other:?}"),
    }
}

fn from_json(value: &Value) -> AttributeValue {
    let (kind, inner) = value.as_object().unwrap().iter().next().unwrap();
    let text = || inner.as_str().unwrap().to_owned();
    let values = || inner.as_array().unwrap().iter();
    match kind.as_str() {
        "S" => AttributeValue::S(text()),
        "N" => AttributeValue::N(text()),
        "B" => AttributeValue::B(Blob::new(STANDARD.decode(text()).unwrap())),
        "BOOL" => AttributeValue::Bool(inner.as_bool().unwrap()),
        "SS" => AttributeValue::Ss(values().map(|text| text.as_str().unwrap().to_owned()).collect()),
        "L" => AttributeValue::L(values().map(from_json).collect()),
        "M" => {
            let members = inner.as_object().unwrap().iter();
            AttributeValue::M(members.map(|(name, value)| (name.clone(), from_json(value))).collect())
        }
        other => panic!("unexpected attribute type {other}"),
    }
}
