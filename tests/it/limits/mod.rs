//! A DynamoDB and an S3 that push back, as clients of the AWS SDK see them.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::get_item::{GetItemError, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, Get, Put, TransactGetItem, TransactWriteItem};
use local::aws::limits::{Limits, Rate, Throughput};
use tests::Stack;
use tokio::task::JoinHandle;

mod objects;
mod recovery;
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

/// Makes a transaction that puts a small row with this sort key into each of the partitions.
fn puts(pks: &[&str], sk: &str) -> Vec<TransactWriteItem> {
    let put = |pk: &&str| Put::builder().table_name(MARKET).set_item(Some(row(pk, sk, 1))).build().unwrap();
    pks.iter().map(|pk| TransactWriteItem::builder().put(put(pk)).build()).collect()
}

/// Writes, and returns the codes with which a transaction was cancelled.
async fn write(client: &Client, writes: Vec<TransactWriteItem>) -> Result<(), Vec<String>> {
    let written = client.transact_write_items().set_transact_items(Some(writes)).send().await;
    let Err(error) = written else { return Ok(()) };
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error.into_service_error() else {
        panic!("not cancelled");
    };
    Err(codes(cancelled.cancellation_reasons()))
}

fn codes(reasons: &[CancellationReason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.code().unwrap().to_owned()).collect()
}

/// Reads the rows with this sort key of these partitions in one transaction. Returns the codes with which it was
/// cancelled.
async fn read(client: &Client, pks: &[&str], sk: &str) -> Result<(), Vec<String>> {
    let get = |pk: &&str| Get::builder().table_name(MARKET).set_key(Some(key(pk, sk))).build().unwrap();
    let gets = pks.iter().map(|pk| TransactGetItem::builder().get(get(pk)).build()).collect();
    let Err(error) = client.transact_get_items().set_transact_items(Some(gets)).send().await else { return Ok(()) };
    let TransactGetItemsError::TransactionCanceledException(cancelled) = error.into_service_error() else {
        panic!("not cancelled");
    };
    Err(codes(cancelled.cancellation_reasons()))
}

/// Begins a transaction that puts a row with this sort key into each partition, and stays under way until transactions
/// are released.
async fn begin(stack: &Stack, pks: &'static [&'static str], sk: &'static str) -> JoinHandle<Result<(), Vec<String>>> {
    stack.aws.limits().hold_transactions();
    let client = client(stack);
    let writing = tokio::spawn(async move { write(&client, puts(pks, sk)).await });
    stack.aws.limits().wait_until_held(1).await;
    writing
}

async fn end(stack: &Stack, writing: JoinHandle<Result<(), Vec<String>>>) {
    stack.aws.limits().release_transactions();
    writing.await.unwrap().unwrap();
}
