//! A DynamoDB that pushes back, as clients of the AWS SDK see it.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::get_item::{GetItemError, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use local::aws::limits::{Limits, Rate, Throughput};
use tests::Stack;

mod service;
mod throughput;
mod transactions;

const MARKET: &str = "marketplace-market";

/// Returns limits that admit this many units once: read and write units of each partition.
fn partitions(read: f64, write: f64) -> Limits {
    let partition = Throughput { read: Rate::once(read), write: Rate::once(write) };
    Limits { partition, ..Limits::unlimited() }
}

/// Returns a client that takes every refusal as the answer.
fn client(stack: &Stack) -> Client {
    let config = tests::dynamodb(stack).config().to_builder().retry_config(RetryConfig::disabled()).build();
    Client::from_conf(config)
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn key(pk: &str, sk: &str) -> HashMap<String, AttributeValue> {
    HashMap::from([("pk".to_owned(), s(pk)), ("sk".to_owned(), s(sk))])
}

/// Returns a row with a text of this length.
fn row(pk: &str, sk: &str, text: usize) -> HashMap<String, AttributeValue> {
    let mut row = key(pk, sk);
    row.insert("text".to_owned(), s(&"x".repeat(text)));
    row
}

/// Reads a row strongly consistently.
async fn get(client: &Client, pk: &str, sk: &str) -> Result<GetItemOutput, GetItemError> {
    let get = client.get_item().table_name(MARKET).set_key(Some(key(pk, sk))).consistent_read(true);
    get.send().await.map_err(SdkError::into_service_error)
}

async fn put(client: &Client, pk: &str, sk: &str, text: usize) -> Result<(), PutItemError> {
    let put = client.put_item().table_name(MARKET).set_item(Some(row(pk, sk, text)));
    put.send().await.map(drop).map_err(SdkError::into_service_error)
}
