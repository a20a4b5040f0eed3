//! Applies messages through the queue: they wait in it, and two instances of `ingest` apply them.

use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures_util::{StreamExt, TryStreamExt, stream};
use local::meter::CostMeter;
use local::workers::{Backlog, EventSource, INGEST_INSTANCES, poll};
use platform::aws::{Environment, Patience};
use platform::resources::{INGEST_TIMEOUT, Queue};
use types::clock::SystemClock;

use super::report::WayReport;
use crate::aws_side::AwsProcess;
use crate::cpu::Stopwatch;
use crate::output::text;

/// The most messages that SQS accepts and hands out at a time.
const MAX_BATCH_MESSAGES: usize = 10;
const MAX_CALLS_IN_FLIGHT: usize = 4;

/// Sends all messages first, and then measures how they are applied.
pub(super) async fn apply(way: &str, messages: &[String]) -> Result<WayReport, String> {
    let aws = AwsProcess::start().await?;
    let lookup = |name: &str| aws.variables.get(name);
    let sqs = queues::client(&Environment::read(&lookup).map_err(text)?, Patience::Bulk);
    let meter = CostMeter::default();
    let service = meter.service(&lookup, Arc::new(SystemClock::new())).map_err(text)?;
    let (_, [feed, dead]) = queues::from_service(&service, [Queue::Feed, Queue::FeedDead]).map_err(text)?;
    let sent = messages.chunks(MAX_BATCH_MESSAGES).map(|batch| send(&sqs, &feed, batch)).collect::<Vec<_>>();
    stream::iter(sent).buffer_unordered(MAX_CALLS_IN_FLIGHT).try_collect::<Vec<()>>().await?;

    let source = EventSource::open(meter.attach_to_queues(&sqs), &feed, INGEST_TIMEOUT).await?;
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

async fn send(sqs: &Client, queue: &str, messages: &[String]) -> Result<(), String> {
    let entries = messages.iter().zip(0..).map(|(message, number)| {
        let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(message);
        entry.build().map_err(text)
    });
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let sent = sqs.send_message_batch().queue_url(queue).set_entries(Some(entries)).send().await;
    match sent.map_err(|error| platform::store::explain(&error))?.failed.as_slice() {
        [] => Ok(()),
        [failed, ..] => Err(format!("a message was not sent: {failed:?}")),
    }
}
