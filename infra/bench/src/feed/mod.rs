//! Measures what the feed costs when messages are applied in bulk, in a queue's small batches, and through the queue.

mod bulk;
mod messages;
mod queue;
mod report;

use types::clock::{Clock, SystemClock};

use crate::cli::FeedOptions;
use crate::machine::Machine;
use crate::market::GeneratedMarket;
use crate::output::Output;
use messages::messages;
use report::FeedReport;

/// The number of messages that `marketctl import` applies at a time.
const IMPORT_CHUNK_MESSAGES: usize = 4_000;
/// The number of messages that a queue hands out at a time.
const QUEUE_BATCH_MESSAGES: usize = 10;

/// Measures all three ways and prints the results.
pub(crate) async fn run(options: &FeedOptions) -> Result<(), String> {
    let market = GeneratedMarket::new(options.messages, SystemClock::new().now());
    let messages = messages(&market, options.messages).ok_or("the messages cannot be made")?;
    let ways = vec![
        bulk::apply("import, 4,000 at a time", &messages, IMPORT_CHUNK_MESSAGES, 1).await?,
        bulk::apply("10 at a time, twice", &messages, QUEUE_BATCH_MESSAGES, 2).await?,
        queue::apply("queue, two instances", &messages).await?,
    ];
    let report = FeedReport { machine: Machine::this(), messages: messages.len(), ways };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    output.whole(&report)
}
