//! Measures what the feed costs when messages are applied in bulk, in a queue's small batches, and through the queue. And
//! it measures how many changes of one stream can be written if each call to the store takes its time.

pub(crate) mod bulk;
pub(crate) mod messages;
mod queue;
mod report;

use platform::resources::Batching;
use types::clock::{Clock, SystemClock};

use crate::cli::FeedOptions;
use crate::machine::Machine;
use crate::market::GeneratedMarket;
use crate::output::Output;
use bulk::BulkOptions;
use messages::{messages, new_listings};
use report::FeedReport;

/// The number of messages that `marketctl import` applies at a time.
const IMPORT_CHUNK_MESSAGES: usize = 4_000;
/// The number of messages that a queue hands out at a time.
const QUEUE_BATCH_MESSAGES: usize = Batching::AT_ONCE.messages;
/// The number of changes that fill a transaction.
pub(crate) const LARGE_BATCH_MESSAGES: usize = 98;

/// Measures all ways and prints the results.
pub(crate) async fn run(options: &FeedOptions) -> Result<(), String> {
    let market = GeneratedMarket::new(options.messages, SystemClock::new().now());
    let messages = messages(&market, options.messages).ok_or("the messages cannot be made")?;
    let import = BulkOptions { batch: IMPORT_CHUNK_MESSAGES, appliers: 1, store_latency_ms: 0 };
    let twice = |batch, store_latency_ms| BulkOptions { batch, appliers: 2, store_latency_ms };
    let mut ways = vec![
        bulk::apply("import, 4,000 at a time", &messages, &import).await?,
        bulk::apply("10 at a time, twice", &messages, &twice(QUEUE_BATCH_MESSAGES, 0)).await?,
        bulk::apply("98 at a time, twice", &messages, &twice(LARGE_BATCH_MESSAGES, 0)).await?,
        queue::apply("queue, two instances", &messages).await?,
    ];
    let listings = new_listings(&market, options.messages).ok_or("the listings cannot be made")?;
    for &latency in &options.store_latencies_ms {
        for batch in [QUEUE_BATCH_MESSAGES, LARGE_BATCH_MESSAGES] {
            let way = format!("listings, {batch} at a time, twice, {latency} ms a call");
            // As many batches of each size, because each takes about as long.
            let listings = &listings[..listings.len() * batch / LARGE_BATCH_MESSAGES];
            ways.push(bulk::apply(&way, listings, &twice(batch, latency)).await?);
        }
    }
    let report = FeedReport { machine: Machine::this(), messages: messages.len(), ways };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    output.whole(&report)
}
