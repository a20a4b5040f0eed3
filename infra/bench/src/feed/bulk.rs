//! Applies messages straight to the tables: in large chunks as an import does, and in batches as a queue hands out.

use std::cell::RefCell;

use feed::{Applier, ApplyOutcome, Message, Stores, parse};
use local::meter::CostMeter;
use platform::aws::Patience;
use platform::resources::Resources;
use types::clock::{Clock, SystemClock};

use super::report::WayReport;
use crate::aws_side::AwsProcess;
use crate::cpu::Stopwatch;
use crate::output::text;

/// How messages are applied.
pub(super) struct BulkOptions {
    /// The number of messages in a batch.
    pub(super) batch: usize,
    /// The number of appliers, side by side.
    pub(super) appliers: usize,
    /// The delay of every DynamoDB call.
    pub(super) store_latency_ms: u64,
}

/// Parses the messages and applies them.
pub(super) async fn apply(way: &str, messages: &[String], options: &BulkOptions) -> Result<WayReport, String> {
    let aws = AwsProcess::start_delayed(options.store_latency_ms).await?;
    let environment = aws.environment()?;
    let meter = CostMeter::default();
    let client = meter.attach(&environment.dynamodb(Patience::Bulk));
    let stores = Stores::new(&client, &Resources::new(Resources::DEFAULT_STACK));
    let stopwatch = Stopwatch::start();
    let batches = RefCell::new(messages.chunks(options.batch));
    let clock = SystemClock::new();
    let appliers = (0..options.appliers).map(|_| drain(Applier::new(stores.clone()), &batches, &clock));
    futures_util::future::try_join_all(appliers).await?;
    Ok(WayReport::new(way, messages.len(), stopwatch.spent(), meter.take()))
}

/// Applies batch after batch until none is left.
pub(crate) async fn drain(
    mut applier: Applier,
    batches: &RefCell<std::slice::Chunks<'_, String>>,
    clock: &dyn Clock,
) -> Result<(), String> {
    loop {
        let Some(batch) = batches.borrow_mut().next() else { return Ok(()) };
        let now = clock.now();
        let parsed = batch.iter().map(|message| Ok(((), parse(message, now).map_err(text)?)));
        let messages: Vec<((), Message)> = parsed.collect::<Result<_, String>>()?;
        for ((), outcome) in applier.apply(messages, now).await {
            match outcome {
                Ok(ApplyOutcome::Changed | ApplyOutcome::Unchanged) => {}
                other => return Err(format!("a message was not applied: {other:?}")),
            }
        }
    }
}
