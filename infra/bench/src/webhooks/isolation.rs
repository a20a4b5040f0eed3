//! Measures whether a receiver that hangs, with many deliveries at once, delays the others.

use std::time::Duration;

use local::workers::Backlog;
use serde::Serialize;
use terminal::number_table;
use tokio::runtime::Runtime;

use super::receiver::Receiver;
use super::stack::{MeteredStack, account, burst, steady};
use crate::figures::{Percentiles, number, text};

/// The number of events for the healthy accounts.
const HEALTHY_EVENTS: u64 = 3_000;
const EVENTS_PER_SECOND: u32 = 150;
/// The number of events for the receiver that hangs. They are queued before its first attempt has failed.
const HANGING_EVENTS: u64 = 2_000;

/// What healthy receivers notice of one that hangs.
#[derive(Debug, Serialize)]
pub(super) struct Isolation {
    /// The times from event to POST, before the one that hangs gets events.
    undisturbed: Percentiles,
    /// The same times afterwards.
    beside_a_hanging_one: Percentiles,
    /// The number of attempts that reached the hanging receiver meanwhile.
    hanging_attempts: u64,
}

/// Measures on a runtime that uses all cores. A deployed instance has a thread of its own, so what waits for the one
/// thread of the other parts would not wait there.
pub(super) async fn measure(endpoints: u64) -> Result<Isolation, String> {
    let on_all_cores = move || Runtime::new().map_err(text)?.block_on(beside_a_hanging_one(endpoints));
    tokio::task::spawn_blocking(on_all_cores).await.map_err(text)?
}

async fn beside_a_hanging_one(endpoints: u64) -> Result<Isolation, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..endpoints {
        stack.add(account(number), format!("{}/{number}", receiver.url)).await?;
    }
    stack.add(account(endpoints), format!("{}/hang", receiver.url)).await?;
    let running = stack.functions().await?;
    burst(&stack, endpoints * 4, 0..endpoints).await?;
    receiver.wait_for_arrivals(endpoints * 4).await?;
    receiver.take().await?;
    let (undisturbed, _) = healthy(&stack, &receiver, endpoints).await?;
    burst(&stack, HANGING_EVENTS, endpoints..endpoints + 1).await?;
    // Waits until these events are fanned out to deliveries, because deliveries are measured and not the feed.
    Backlog::new(stack.sqs.clone(), stack.feed.clone()).wait_until_empty().await?;
    let (beside_a_hanging_one, hanging_attempts) = healthy(&stack, &receiver, endpoints).await?;
    drop(running);
    Ok(Isolation { undisturbed, beside_a_hanging_one, hanging_attempts })
}

/// Delivers the events of the healthy accounts. Returns how long they took, and how many attempts hung meanwhile.
async fn healthy(stack: &MeteredStack, receiver: &Receiver, endpoints: u64) -> Result<(Percentiles, u64), String> {
    steady(stack, HEALTHY_EVENTS, EVENTS_PER_SECOND, 0..endpoints).await?;
    receiver.wait_for_arrivals(HEALTHY_EVENTS).await?;
    let arrived = receiver.take().await?;
    let millis = arrived.millis.iter().map(|millis| Duration::from_millis(millis.unsigned_abs()));
    Ok((Percentiles::from_samples(millis.collect()), arrived.hanging))
}

impl Isolation {
    pub(super) fn table(&self) -> String {
        let row = |name: &str, times: &Percentiles| {
            [name.to_owned(), number(times.p50_us / 1e3), number(times.p99_us / 1e3), times.samples.to_string()]
        };
        let rows = [row("undisturbed", &self.undisturbed), row("beside one that hangs", &self.beside_a_hanging_one)];
        let table = number_table(["event to POST, ms", "p50", "p99", "samples"], rows);
        format!("{table}\n\nThe one that hangs had {} attempts meanwhile.", self.hanging_attempts)
    }
}
