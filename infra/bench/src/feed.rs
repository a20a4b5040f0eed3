//! Measures what the feed costs when messages are applied in bulk, in a queue's small batches, and through the queue.
//!
//! The messages are as a marketplace sends them: mostly listings that come and go, and some of everything else.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use ::feed::{Applier, ApplyOutcome, Message, Stores, parse};
use common::aws::Patience;
use common::clock::{Clock, SystemClock};
use common::records::PublicListing;
use common::resources::{Batching, INGEST_TIMEOUT, Queue, Resources};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use local::demo::{LargeMarket, variant_id};
use local::meter::{Bill, CostMeter};
use local::workers::{Backlog, EventSource, INGEST_INSTANCES, poll};
use serde::Serialize;
use serde_json::{Value, json};
use terminal::{Output, number_table};

use crate::cli::FeedOptions;
use crate::figures::{number, text};
use crate::process::{Machine, Stopwatch, TimeSpent};
use crate::stack::{AwsProcess, send};

/// The number of messages that `marketctl import` applies at a time.
const IMPORT_CHUNK_MESSAGES: usize = 4_000;
/// The number of messages that a queue hands out at a time.
const QUEUE_BATCH_MESSAGES: usize = Batching::AT_ONCE.messages;
/// The number of changes that fill a transaction.
const LARGE_BATCH_MESSAGES: usize = 98;
/// The most messages that SQS accepts at a time.
const MAX_SENT_MESSAGES: usize = 10;
const MAX_CALLS_IN_FLIGHT: usize = 4;

/// The number of users that listings and orders belong to.
const USERS: u64 = 500;
/// The number of items whose variants are quoted. They are those with the most listings.
const QUOTED_ITEMS: u64 = 500;

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct FeedReport {
    machine: Machine,
    messages: usize,
    ways: Vec<WayReport>,
}

/// What was measured of one way for messages to get into the tables.
#[derive(Debug, Serialize)]
struct WayReport {
    name: &'static str,
    messages_per_second: f64,
    cpu_us_per_message: f64,
    calls_per_message: f64,
    write_units_per_message: f64,
    bill: Bill,
}

/// Measures all ways and prints the results.
pub(crate) async fn run(options: &FeedOptions) -> Result<(), String> {
    let market = LargeMarket::new(options.messages, SystemClock::new().now());
    let messages = messages(&market, options.messages).ok_or("the messages cannot be made")?;
    let ways = vec![
        apply("import, 4,000 at a time", &messages, IMPORT_CHUNK_MESSAGES, 1).await?,
        apply("10 at a time, twice", &messages, QUEUE_BATCH_MESSAGES, 2).await?,
        apply("98 at a time, twice", &messages, LARGE_BATCH_MESSAGES, 2).await?,
        apply_through_queue("queue, two instances", &messages).await?,
    ];
    let report = FeedReport { machine: Machine::this(), messages: messages.len(), ways };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    Ok(output.whole(&report)?)
}

/// Parses messages and applies them straight to the tables, in batches, by appliers side by side.
async fn apply(way: &'static str, messages: &[String], batch: usize, appliers: usize) -> Result<WayReport, String> {
    let (aws, meter) = (AwsProcess::start().await?, CostMeter::default());
    let client = aws.environment()?.watched_by(meter.interceptor()).dynamodb(Patience::Bulk);
    let stores = Stores::new(&client, &Resources::new(Resources::DEFAULT_STACK));
    let stopwatch = Stopwatch::start();
    let batches = RefCell::new(messages.chunks(batch));
    try_join_all((0..appliers).map(|_| drain(Applier::new(stores.clone()), &batches))).await?;
    Ok(WayReport::new(way, messages.len(), stopwatch.spent(), meter.take()))
}

/// Applies batch after batch until none is left.
async fn drain(mut applier: Applier, batches: &RefCell<std::slice::Chunks<'_, String>>) -> Result<(), String> {
    let clock = SystemClock::new();
    loop {
        let Some(batch) = batches.borrow_mut().next() else { return Ok(()) };
        let now = clock.now();
        let parsed = batch.iter().map(|message| Ok(((), parse(message, now).map_err(text)?)));
        let messages: Vec<((), Message)> = parsed.collect::<Result<_, String>>()?;
        for ((), outcome) in applier.apply(messages, &clock).await {
            match outcome {
                Ok(ApplyOutcome::Changed | ApplyOutcome::Unchanged) => {}
                other => return Err(format!("a message was not applied: {other:?}")),
            }
        }
    }
}

/// Sends all messages to the queue first, and then measures how two instances of `ingest` apply them.
async fn apply_through_queue(way: &'static str, messages: &[String]) -> Result<WayReport, String> {
    let (aws, meter) = (AwsProcess::start().await?, CostMeter::default());
    let lookup = |name: &str| aws.variables.get(name);
    let sqs = common::queues::client(&aws.environment()?, Patience::Bulk);
    let service = meter.service(&lookup, Arc::new(SystemClock::new())).map_err(text)?;
    let (_, [feed, dead]) = common::queues::from_service(&service, [Queue::Feed, Queue::FeedDead]).map_err(text)?;
    let sent = messages.chunks(MAX_SENT_MESSAGES).map(|batch| send(&sqs, &feed, batch)).collect::<Vec<_>>();
    stream::iter(sent).buffer_unordered(MAX_CALLS_IN_FLIGHT).try_collect::<Vec<()>>().await?;

    let counted = common::queues::client(&aws.environment()?.watched_by(meter.interceptor()), Patience::Bulk);
    let source = EventSource::open(counted, &feed, INGEST_TIMEOUT).await?;
    let workers = (0..INGEST_INSTANCES).map(|_| ingest::worker(&service));
    let workers: Vec<_> = workers.collect::<Result<_, _>>().map_err(text)?;
    let stopwatch = Stopwatch::start();
    let running: Vec<_> = workers.into_iter().map(|worker| poll(source.clone(), worker)).collect();
    Backlog::new(sqs.clone(), feed).wait_until_empty().await?;
    let done = WayReport::new(way, messages.len(), stopwatch.spent(), meter.take());
    drop(running);
    match Backlog::new(sqs, dead).count().await? {
        0 => Ok(done),
        dead => Err(format!("{dead} messages were not applied")),
    }
}

impl WayReport {
    /// Computes the figures per message.
    fn new(name: &'static str, messages: usize, spent: TimeSpent, bill: Bill) -> Self {
        let messages = messages as f64;
        let each = |time: Duration| time.as_secs_f64() / messages;
        Self {
            name,
            messages_per_second: 1.0 / each(spent.wall),
            cpu_us_per_message: each(spent.cpu) * 1e6,
            calls_per_message: bill.all_calls() as f64 / messages,
            write_units_per_message: bill.write_units / messages,
            bill,
        }
    }
}

impl FeedReport {
    fn table(&self) -> String {
        let header = ["feed", "messages/s", "CPU µs each", "calls each", "write units each"];
        let rows = self.ways.iter().map(|way| {
            [
                way.name.to_owned(),
                number(way.messages_per_second),
                number(way.cpu_us_per_message),
                format!("{:.2}", way.calls_per_message),
                number(way.write_units_per_message),
            ]
        });
        format!("{}, {} messages\n\n{}", self.machine, self.messages, number_table(header, rows))
    }
}

/// Returns `count` messages. Of twenty, twelve are new listings, four are listings that were sold, two are quotes, one
/// is an item and one is an order.
fn messages(market: &LargeMarket, count: u64) -> Option<Vec<String>> {
    (0..count).map(|number| message(market, number).map(|message| message.to_string())).collect()
}

fn message(market: &LargeMarket, number: u64) -> Option<Value> {
    match number % 20 {
        0..12 => listing(market.listing(number)?, "active", 1),
        12..16 => listing(market.listing(number - 12)?, "sold", 2),
        16 | 17 => Some(quote(market, number)),
        18 => {
            let item = serde_json::to_value(market.item(number)?).ok()?;
            typed("item", item, json!({ "version": 1 }))
        }
        _ => order(market, number),
    }
}

fn listing(listing: PublicListing, status: &str, version: u64) -> Option<Value> {
    let rest = json!({ "account_id": user(listing.price_usd.cents()), "status": status, "version": version });
    typed("listing", serde_json::to_value(listing).ok()?, rest)
}

fn quote(market: &LargeMarket, number: u64) -> Value {
    let asks: Vec<String> = (0..20).map(|ask| format!("{}.{:02}", 1 + number % 900, ask)).collect();
    json!({
        "type": "quote", "variant_id": variant_id(number % QUOTED_ITEMS, 0), "marketplace": "harbour",
        "asks_usd": asks, "observed_at": market.now(),
    })
}

fn order(market: &LargeMarket, number: u64) -> Option<Value> {
    let listing = market.listing(number)?;
    Some(json!({
        "type": "order", "id": listing.id, "account_id": user(number / 20), "status": "delivered",
        "source": "checkout", "total_usd": listing.price_usd, "created_at": listing.created_at,
        "delivered_at": market.now(), "version": 1,
        "items": [{ "listing_id": listing.id, "price_usd": listing.price_usd, "item_id": listing.item_id }],
    }))
}

fn user(number: u64) -> String {
    uuid::Uuid::from_u128(u128::from(number % USERS)).to_string()
}

/// Joins a record's fields with the other fields of its message.
fn typed(name: &str, record: Value, rest: Value) -> Option<Value> {
    let (Value::Object(mut message), Value::Object(rest)) = (record, rest) else { return None };
    message.insert("type".to_owned(), name.into());
    message.extend(rest);
    Some(Value::Object(message))
}
