//! Measures how fast events are delivered, and whether a receiver that hangs, with many deliveries at once, delays the
//! others.

use std::time::Duration;

use local::meter::Bill;
use local::workers::Backlog;
use serde::Serialize;
use terminal::number_table;
use tokio::runtime::Runtime;

use super::receiver::Receiver;
use super::stack::{Load, MeteredStack, Stacks, account, burst, steady};
use crate::figures::{Percentiles, number, text};
use crate::process::{Machine, Stopwatch, TimeSpent};

/// The number of runs for the throughput. The best counts.
const RUNS: usize = 3;
/// The number of events that are sent before a measurement, to open connections and page in code.
pub(super) const WARM_UP_EVENTS: u64 = 500;
/// The number of events for the healthy accounts.
const HEALTHY_EVENTS: u64 = 3_000;
const EVENTS_PER_SECOND: u32 = 150;
/// The number of events for the receiver that hangs. They are queued before its first attempt has failed.
const HANGING_EVENTS: u64 = 2_000;

/// The best run.
#[derive(Debug, Serialize)]
pub(super) struct Throughput {
    /// The number of stacks side by side, each with embedded stores of its own.
    stores: u64,
    functions: Run,
}

/// One run of the functions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) deliveries_per_second: f64,
    /// The CPU time of the functions for a delivery, without their stores.
    pub(super) service_us: f64,
    pub(super) stores_us: f64,
    receiver_us: f64,
    events: u64,
    /// The calls of the functions.
    bill: Bill,
}

impl Throughput {
    pub(super) async fn measure(load: Load) -> Result<Self, String> {
        let mut best = Box::pin(Run::measure(load)).await?;
        for _ in 1..RUNS {
            let run = Box::pin(Run::measure(load)).await?;
            if run.deliveries_per_second > best.deliveries_per_second {
                best = run;
            }
        }
        Ok(Self { stores: load.stores, functions: best })
    }

    /// Formats deliveries per second, and what each takes.
    pub(super) fn table(&self) -> String {
        let Run { deliveries_per_second, service_us, stores_us, receiver_us, events, bill } = &self.functions;
        let header = ["deliveries", "a second", "service CPU µs", "stores CPU µs", "receiver CPU µs"];
        let figures = [deliveries_per_second, service_us, stores_us, receiver_us].map(|figure| number(*figure));
        let [rate, service, stores, receiver] = figures;
        let each = |sum: f64| sum / *events as f64;
        let queue_calls: u64 = bill.calls.iter().filter(|(name, _)| name.contains("Message")).map(|(_, n)| n).sum();
        format!(
            "{}, {events} events, embedded stores: {}\n\n{}\n\nCalls each: {:.2} of DynamoDB, {:.2} of SQS. Units each: \
             {:.1} read, {:.1} written.",
            Machine::this(),
            self.stores,
            number_table(header, [["functions".to_owned(), rate, service, stores, receiver]]),
            each((bill.all_calls() - queue_calls) as f64),
            each(queue_calls as f64),
            each(bill.read_units),
            each(bill.write_units),
        )
    }
}

impl Run {
    /// Delivers the events of a load by the functions, on fresh stacks. Events are sent as fast as the feed accepts them.
    pub(super) async fn measure(load: Load) -> Result<Self, String> {
        let receiver = Receiver::start().await?;
        let stacks = Stacks::start(load, &receiver.url).await?;
        let running = stacks.functions().await?;
        stacks.burst(WARM_UP_EVENTS).await?;
        receiver.wait_for_arrivals(WARM_UP_EVENTS).await?;
        receiver.take().await?;
        stacks.take_bill();
        let (stores_cpu, receiver_cpu, stopwatch) = (stacks.cpu(), receiver.cpu(), Stopwatch::start());
        stacks.burst(load.events).await?;
        receiver.wait_for_arrivals(load.events).await?;
        let TimeSpent { cpu, wall } = stopwatch.spent();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / load.events as f64;
        let run = Self {
            deliveries_per_second: load.events as f64 / wall.as_secs_f64(),
            service_us: each(cpu),
            stores_us: each(stacks.cpu().saturating_sub(stores_cpu)),
            receiver_us: each(receiver.cpu().saturating_sub(receiver_cpu)),
            events: load.events,
            bill: stacks.take_bill(),
        };
        drop(running);
        Ok(run)
    }
}

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
pub(super) async fn isolation(endpoints: u64) -> Result<Isolation, String> {
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
