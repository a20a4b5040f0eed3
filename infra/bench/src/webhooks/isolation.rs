//! Measures whether receivers that hang delay the others: one with many deliveries at once, and a hundred.

use std::num::NonZeroU32;
use std::time::Duration;

use local::workers::Backlog;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::hanging_accounts::{self, BesideHangingAccounts};
use super::load::{account, burst, steady};
use super::receiver::Receiver;
use super::stack::MeteredStack;
use crate::output::text;
use crate::percentiles::Percentiles;

/// The number of events for the healthy accounts.
const HEALTHY_EVENTS: u64 = 3_000;
const EVENTS_PER_SECOND: u32 = 150;
/// The number of events for the receiver that hangs. They are queued before its first attempt has failed.
const HANGING_EVENTS: u64 = 2_000;

/// What healthy receivers notice of others that hang.
#[derive(Debug, Serialize)]
pub(super) struct Isolation {
    /// The times from event to POST, before the one that hangs gets events.
    pub(super) undisturbed: Percentiles,
    /// The same times afterwards.
    pub(super) beside_a_hanging_one: Percentiles,
    /// The number of attempts that reached the hanging receiver meanwhile.
    pub(super) hanging_attempts: u64,
    /// The same for many that hang.
    pub(super) beside_hanging_accounts: BesideHangingAccounts,
}

/// Measures on a runtime that uses all cores. A deployed instance has a thread of its own, so what waits for the one
/// thread of the other parts would not wait there.
pub(super) async fn measure(endpoints: u64) -> Result<Isolation, String> {
    let on_all_cores = move || Runtime::new().map_err(text)?.block_on(measure_here(endpoints));
    tokio::task::spawn_blocking(on_all_cores).await.map_err(text)?
}

async fn measure_here(endpoints: u64) -> Result<Isolation, String> {
    let (undisturbed, beside_a_hanging_one, hanging_attempts) = Box::pin(beside_a_hanging_one(endpoints)).await?;
    let beside_hanging_accounts = Box::pin(hanging_accounts::measure(endpoints)).await?;
    Ok(Isolation { undisturbed, beside_a_hanging_one, hanging_attempts, beside_hanging_accounts })
}

/// Returns the times undisturbed and beside one that hangs, and the number of its attempts.
async fn beside_a_hanging_one(endpoints: u64) -> Result<(Percentiles, Percentiles, u64), String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..endpoints {
        stack.add(account(number), format!("{}/{number}", receiver.url)).await?;
    }
    stack.add(account(endpoints), format!("{}/hang", receiver.url)).await?;
    let running = stack.functions(NonZeroU32::MIN).await?;
    burst(&stack, endpoints * 4, 0..endpoints).await?;
    receiver.wait_for_arrivals(endpoints * 4).await?;
    receiver.take().await?;
    let (undisturbed, _) = healthy(&stack, &receiver, endpoints).await?;
    burst(&stack, HANGING_EVENTS, endpoints..endpoints + 1).await?;
    // Waits until these events are fanned out to deliveries, because deliveries are measured and not the feed.
    Backlog::new(stack.sqs.clone(), stack.feed.clone()).wait_until_empty().await?;
    let (disturbed, hanging_attempts) = healthy(&stack, &receiver, endpoints).await?;
    drop(running);
    Ok((undisturbed, disturbed, hanging_attempts))
}

async fn healthy(stack: &MeteredStack, receiver: &Receiver, endpoints: u64) -> Result<(Percentiles, u64), String> {
    steady(stack, HEALTHY_EVENTS, EVENTS_PER_SECOND, 0..endpoints).await?;
    receiver.wait_for_arrivals(HEALTHY_EVENTS).await?;
    let arrived = receiver.take().await?;
    let millis = arrived.millis.iter().map(|millis| Duration::from_millis(millis.unsigned_abs()));
    Ok((Percentiles::from_samples(millis.collect()), arrived.hanging))
}
