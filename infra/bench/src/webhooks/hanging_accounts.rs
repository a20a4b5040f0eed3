//! Measures whether accounts whose endpoints all hang delay the others, in their first attempts and in their retries.
//!
//! Every second healthy endpoint answers 500 to the first attempt of each delivery, and acknowledges the retry.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Serialize;
use webhook::transport::DEADLINE;

use super::load::{account, burst, steady};
use super::receiver::{ArrivalCount, Receiver};
use super::stack::MeteredStack;
use crate::percentiles::Percentiles;

const ACCOUNTS: u64 = 10;
const ENDPOINTS_PER_ACCOUNT: u64 = 10;
/// The number of endpoints that hang.
pub(super) const ENDPOINTS: u64 = ACCOUNTS * ENDPOINTS_PER_ACCOUNT;
/// The events of these accounts together. Each is for all endpoints of its account.
const EVENTS_PER_SECOND: u32 = 100;
/// How long these accounts get events before the healthy ones are measured.
const BUILD_UP: Duration = DEADLINE;

/// The number of events for the healthy accounts.
const HEALTHY_EVENTS: u64 = 3_000;
const HEALTHY_EVENTS_PER_SECOND: u32 = 150;
/// How long to wait for healthy deliveries that have not arrived.
const PATIENCE: Duration = Duration::from_mins(2);

/// When the first retry is due after the first attempt.
const FIRST_RETRY_DELAY_MILLIS: i64 = 30_000;

/// What healthy accounts notice of others that hang.
#[derive(Debug, Serialize)]
pub(super) struct BesideHangingAccounts {
    pub(super) undisturbed: Lanes,
    pub(super) disturbed: Lanes,
    /// The p99 of first attempts, as a multiple of the undisturbed one.
    pub(super) first_p99_ratio: f64,
    /// The p99 of retries, as a multiple of the undisturbed one.
    pub(super) retry_p99_ratio: f64,
    /// The number of attempts that hung meanwhile.
    pub(super) hanging_attempts: u64,
}

/// How late deliveries to healthy endpoints arrive.
#[derive(Debug, Serialize)]
pub(super) struct Lanes {
    /// The time from an event to the first attempt.
    pub(super) first: Percentiles,
    /// The time from when a retry is due to the retry.
    pub(super) retry: Percentiles,
    /// The number of first attempts and retries that did not arrive in time to be counted.
    pub(super) missing: u64,
}

pub(super) async fn measure(endpoints: u64) -> Result<BesideHangingAccounts, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..endpoints {
        let folder = if is_retried(number) { "again/" } else { "" };
        stack.add(account(number), format!("{}/{folder}{number}", receiver.url)).await?;
    }
    let hanging = endpoints..endpoints + ACCOUNTS;
    for number in hanging.clone() {
        for endpoint in 0..ENDPOINTS_PER_ACCOUNT {
            stack.add(account(number), format!("{}/hang/{number}/{endpoint}", receiver.url)).await?;
        }
    }
    let running = stack.functions(NonZeroU32::MIN).await?;
    burst(&stack, endpoints * 4, 0..endpoints).await?;
    receiver.wait_at_most(PATIENCE, expected(endpoints * 4, endpoints)).await?;
    receiver.take().await?;
    let (undisturbed, _) = healthy(&stack, &receiver, endpoints).await?;
    let disturbance = Box::pin(steady(&stack, u64::MAX, EVENTS_PER_SECOND, hanging));
    let measured = Box::pin(async {
        tokio::time::sleep(BUILD_UP).await;
        receiver.take().await?;
        healthy(&stack, &receiver, endpoints).await
    });
    let (disturbed, hanging_attempts) = tokio::select! {
        sent = disturbance => sent.and_then(|()| Err("the hanging accounts got all their events".to_owned())),
        measured = measured => measured,
    }?;
    drop(running);
    Ok(BesideHangingAccounts::new(undisturbed, disturbed, hanging_attempts))
}

/// Delivers the events of the healthy accounts. Returns how late they arrived, and how many attempts hung meanwhile.
async fn healthy(stack: &MeteredStack, receiver: &Receiver, endpoints: u64) -> Result<(Lanes, u64), String> {
    steady(stack, HEALTHY_EVENTS, HEALTHY_EVENTS_PER_SECOND, 0..endpoints).await?;
    let expected = expected(HEALTHY_EVENTS, endpoints);
    receiver.wait_at_most(PATIENCE, expected).await?;
    let arrived = receiver.take().await?;
    let counted = (arrived.millis.len() + arrived.retry_millis.len()) as u64;
    let lanes = Lanes {
        first: percentiles(&arrived.millis, 0),
        retry: percentiles(&arrived.retry_millis, FIRST_RETRY_DELAY_MILLIS),
        missing: (expected.first + expected.retries).saturating_sub(counted),
    };
    Ok((lanes, arrived.hanging))
}

/// Returns what arrives at the healthy endpoints after these events.
fn expected(events: u64, endpoints: u64) -> ArrivalCount {
    let retries = (0..events).filter(|event| is_retried(event % endpoints)).count();
    ArrivalCount { first: events, retries: retries as u64 }
}

const fn is_retried(endpoint: u64) -> bool {
    endpoint % 2 == 1
}

fn percentiles(millis: &[i64], due_millis: i64) -> Percentiles {
    let late = millis.iter().map(|millis| Duration::from_millis((millis - due_millis).max(0).unsigned_abs()));
    Percentiles::from_samples(late.collect())
}

impl BesideHangingAccounts {
    fn new(undisturbed: Lanes, disturbed: Lanes, hanging_attempts: u64) -> Self {
        // Times are exact to a millisecond.
        let ratio = |disturbed: &Percentiles, usual: &Percentiles| disturbed.p99_us / usual.p99_us.max(1_000.0);
        Self {
            first_p99_ratio: ratio(&disturbed.first, &undisturbed.first),
            retry_p99_ratio: ratio(&disturbed.retry, &undisturbed.retry),
            undisturbed,
            disturbed,
            hanging_attempts,
        }
    }
}
