//! The bare loop: the same calls as the functions make, and nothing else. It shows the least that a delivery costs with
//! these libraries and stores.
//!
//! Each task repeats two steps. First it receives up to ten events from the feed, reads ten accounts, sends a message
//! for each event, which carries the delivery, and deletes the events. Then it receives up to ten messages and reads
//! ten accounts. For each message it puts a row with one index entry, POSTs the body and updates the row. In the end
//! it deletes the messages.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnValue};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, SendMessageBatchRequestEntry};
use futures_util::future::try_join_all;
use platform::aws::{Environment, Patience};
use platform::resources::{Queue, Table};
use platform::store::Row;
use serde_json::{Value, json};
use uuid::Uuid;

use super::load::account;
use super::stack::MeteredStack;
use crate::output::text;

const CONCURRENT_TASKS: usize = 16;

/// The loop, with everything that it calls.
pub(super) struct BareLoop<'s> {
    dynamodb: aws_sdk_dynamodb::Client,
    sqs: &'s aws_sdk_sqs::Client,
    http: reqwest::Client,
    table: String,
    feed: &'s str,
    first: String,
    url: String,
    first_account: u64,
    left: AtomicU64,
}

impl<'s> BareLoop<'s> {
    /// Creates a loop that POSTs to this URL. The stack's accounts are numbered from `first_account`.
    pub(super) fn new(stack: &'s MeteredStack, first_account: u64, url: String) -> Result<Self, String> {
        let variable = |name: &str| stack.aws.variables.get(name);
        let missing = || "a variable is missing".to_owned();
        Ok(Self {
            dynamodb: Environment::read(&variable).map_err(text)?.dynamodb(Patience::Request),
            sqs: &stack.sqs,
            http: reqwest::Client::builder().no_proxy().build().map_err(text)?,
            table: variable(Table::Webhooks.variable()).ok_or_else(missing)?,
            feed: &stack.feed,
            first: variable(Queue::WebhooksFirst.variable()).ok_or_else(missing)?,
            url,
            first_account,
            left: AtomicU64::new(0),
        })
    }

    /// Delivers this many events from the feed.
    pub(super) async fn run(&self, events: u64) -> Result<(), String> {
        self.left.store(events, Ordering::SeqCst);
        try_join_all((0..CONCURRENT_TASKS).map(|_| self.task())).await.map(drop)
    }

    async fn task(&self) -> Result<(), String> {
        while self.left.load(Ordering::SeqCst) > 0 {
            self.fan_out().await?;
            let sent = self.send().await?;
            self.left.fetch_sub(sent.min(self.left.load(Ordering::SeqCst)), Ordering::SeqCst);
        }
        Ok(())
    }

    async fn fan_out(&self) -> Result<(), String> {
        let events = self.receive(self.feed).await?;
        if events.is_empty() {
            return Ok(());
        }
        self.read_accounts().await?;
        let entries = events.iter().zip(0..).map(|(event, number)| {
            let message = carried(event).ok_or("an event is unreadable")?;
            let entry = SendMessageBatchRequestEntry::builder().id(number.to_string());
            entry.message_body(message.to_string()).build().map_err(text)
        });
        let entries = entries.collect::<Result<Vec<_>, String>>()?;
        let sent = self.sqs.send_message_batch().queue_url(&self.first).set_entries(Some(entries)).send().await;
        sent.map_err(|error| platform::store::explain(&error))?;
        self.delete(self.feed, &events).await
    }

    async fn send(&self) -> Result<u64, String> {
        let messages = self.receive(&self.first).await?;
        if messages.is_empty() {
            return Ok(0);
        }
        self.read_accounts().await?;
        try_join_all(messages.iter().map(|message| self.deliver(message))).await?;
        self.delete(&self.first, &messages).await?;
        Ok(messages.len() as u64)
    }

    async fn deliver(&self, message: &Message) -> Result<(), String> {
        let carried: Value = serde_json::from_str(message.body.as_deref().unwrap_or_default()).map_err(text)?;
        let row = claimed_row(&carried).ok_or("a message is unreadable")?;
        let (pk, body) = (row["pk"].clone(), carried["body"].as_str().unwrap_or_default().to_owned());
        let put = self.dynamodb.put_item().table_name(&self.table).set_item(Some(row));
        let put = put.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", "pk");
        put.send().await.map_err(|error| platform::store::explain(&error))?;
        let posted = self.http.post(&self.url).body(body).send().await.map_err(text)?;
        posted.bytes().await.map_err(text)?;
        let record = self
            .dynamodb
            .update_item()
            .table_name(&self.table)
            .key("pk", pk)
            .key("sk", AttributeValue::S("delivery".to_owned()))
            .update_expression(
                "SET #status = :delivered, #ttl = #kept, #attempts = list_append(#attempts, :attempt) REMOVE #lease, #until",
            )
            .condition_expression("#status = :pending AND #round = :one")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#round", "round")
            .expression_attribute_names("#until", "lease_until")
            .expression_attribute_names("#attempts", "attempts")
            .expression_attribute_names("#lease", "lease_id")
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_names("#kept", "kept_until")
            .expression_attribute_values(":pending", AttributeValue::S("pending".to_owned()))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":delivered", AttributeValue::S("delivered".to_owned()))
            .expression_attribute_values(
                ":attempt",
                AttributeValue::L(vec![AttributeValue::S(
                    r#"{"at":"2026-11-20T10:00:00.000Z","status":204,"latency_ms":1,"error":null}"#.to_owned(),
                )]),
            )
            .return_values(ReturnValue::AllNew);
        record.send().await.map(drop).map_err(|error| platform::store::explain(&error))
    }

    async fn read_accounts(&self) -> Result<(), String> {
        let keys = (self.first_account..self.first_account + 10).map(|number| {
            Row::from([
                ("pk".to_owned(), AttributeValue::S(format!("account#{}", account(number)))),
                ("sk".to_owned(), AttributeValue::S("endpoints".to_owned())),
            ])
        });
        let request = KeysAndAttributes::builder().set_keys(Some(keys.collect())).consistent_read(true).build();
        let read = self.dynamodb.batch_get_item().request_items(&self.table, request.map_err(text)?).send().await;
        read.map(drop).map_err(|error| platform::store::explain(&error))
    }

    async fn receive(&self, queue: &str) -> Result<Vec<Message>, String> {
        let received = self.sqs.receive_message().queue_url(queue).max_number_of_messages(10).send().await;
        Ok(received.map_err(|error| platform::store::explain(&error))?.messages.unwrap_or_default())
    }

    async fn delete(&self, queue: &str, messages: &[Message]) -> Result<(), String> {
        let entries = messages.iter().zip(0..).map(|(message, number)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(number.to_string());
            entry.set_receipt_handle(message.receipt_handle.clone()).build().map_err(text)
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let deleted = self.sqs.delete_message_batch().queue_url(queue).set_entries(Some(entries)).send().await;
        deleted.map(drop).map_err(|error| platform::store::explain(&error))
    }
}

/// Returns what a message carries: a delivery of the event, with a body as large as a delivery's.
fn carried(event: &Message) -> Option<Value> {
    let event: Value = serde_json::from_str(event.body.as_deref()?).ok()?;
    let id = Uuid::new_v4();
    let body = json!({"id": id, "event": event["event"], "created_at": event["created_at"], "data": event["data"]});
    Some(json!({"id": id, "account_id": event["account_id"], "body": body.to_string()}))
}

/// Returns a row as large as a claimed delivery's, with the same index entry.
fn claimed_row(carried: &Value) -> Option<Row> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let (pk, account) = (format!("delivery#{}", carried["id"].as_str()?), carried["account_id"].as_str()?);
    Some(Row::from([
        ("pk".to_owned(), text(&pk)),
        ("sk".to_owned(), text("delivery")),
        ("endpoint_id".to_owned(), text(account)),
        ("account_id".to_owned(), text(account)),
        ("event".to_owned(), text("listing.sold")),
        ("created_at".to_owned(), number(1_795_176_000_000)),
        ("body".to_owned(), text(carried["body"].as_str()?)),
        ("status".to_owned(), text("pending")),
        ("round".to_owned(), number(1)),
        ("recorded".to_owned(), number(0)),
        ("token".to_owned(), text(&pk)),
        ("claims".to_owned(), number(1)),
        ("lease_id".to_owned(), text(&Uuid::new_v4().to_string())),
        ("lease_until".to_owned(), number(9_999_999_999_999)),
        ("due".to_owned(), number(1_795_176_000_000)),
        ("attempts".to_owned(), AttributeValue::L(Vec::new())),
        ("wake_shard".to_owned(), text(&format!("first#{account}"))),
        ("kept_until".to_owned(), number(1_798_372_800)),
    ]))
}

fn number(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}
