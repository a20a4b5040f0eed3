//! Sends events, as fast as the feed accepts them or at a steady pace.

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use types::clock::{Clock, SystemClock};
use types::ids::UserId;
use uuid::Uuid;

use super::stack::MeteredStack;
use crate::output::text;

const MAX_BATCH_EVENTS: u64 = 10;
const MAX_CALLS_IN_FLIGHT: usize = 4;

/// How much is delivered, and by how many stacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The number of events in a burst.
    pub(super) events: u64,
    /// The number of accounts, each with one endpoint.
    pub(super) endpoints: u64,
    /// The number of stacks, each with embedded stores of its own.
    pub(super) stores: u64,
}

/// Returns the account with this number. Accounts are numbered from 0 and have one endpoint each.
pub(super) fn account(number: u64) -> UserId {
    Uuid::from_u128(0xacc0_0000 + u128::from(number)).into()
}

/// Sends events to the accounts in turn, as fast as the queue accepts them.
pub(super) async fn burst(stack: &MeteredStack, events: u64, accounts: std::ops::Range<u64>) -> Result<(), String> {
    let batches = (0..events.div_ceil(MAX_BATCH_EVENTS)).map(|batch| {
        let numbers = batch * MAX_BATCH_EVENTS..events.min((batch + 1) * MAX_BATCH_EVENTS);
        send(stack, numbers, accounts.clone())
    });
    stream::iter(batches).buffer_unordered(MAX_CALLS_IN_FLIGHT).try_collect::<Vec<()>>().await.map(drop)
}

/// Sends events one at a time, `per_second` of them per second.
pub(super) async fn steady(
    stack: &MeteredStack,
    events: u64,
    per_second: u32,
    accounts: std::ops::Range<u64>,
) -> Result<(), String> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut sending = stream::FuturesUnordered::new();
    for number in 0..events {
        ticks.tick().await;
        sending.push(send(stack, number..number + 1, accounts.clone()));
        while let Some(Some(sent)) = futures_util::FutureExt::now_or_never(sending.next()) {
            sent?;
        }
    }
    sending.try_collect::<Vec<()>>().await.map(drop)
}

/// Returns the data of every event.
pub(super) fn event_data() -> Value {
    json!({"listing_id": Uuid::from_u128(1), "order_id": Uuid::from_u128(2), "price_usd": "12.50", "kind": "bot"})
}

async fn send(
    stack: &MeteredStack,
    numbers: std::ops::Range<u64>,
    accounts: std::ops::Range<u64>,
) -> Result<(), String> {
    let now = SystemClock::new().now();
    let width = accounts.end - accounts.start;
    let entries = numbers.map(|number| {
        let event = json!({
            "type": "event", "id": Uuid::new_v4(), "event": "listing.sold",
            "account_id": account(accounts.start + number % width), "created_at": now,
            "data": event_data(),
        });
        let entry = SendMessageBatchRequestEntry::builder().id((number % MAX_BATCH_EVENTS).to_string());
        entry.message_body(event.to_string()).build().map_err(text)
    });
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let sent = stack.sqs.send_message_batch().queue_url(&stack.feed).set_entries(Some(entries)).send().await;
    match sent.map_err(|error| platform::store::explain(&error))?.failed.as_slice() {
        [] => Ok(()),
        [failed, ..] => Err(format!("an event was not sent: {failed:?}")),
    }
}
