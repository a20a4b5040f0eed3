//! Measures how fast events are delivered, and whether a receiver that hangs, with many deliveries at once, delays the
//! others.

use std::ops::Range;
use std::time::Duration;

use local::meter::Bill;
use local::workers::Backlog;
use serde::Serialize;
use terminal::number_table;
use tokio::runtime::Runtime;

use super::receiver::Receiver;
use super::stack::{Load, MeteredStack, Stacks, account, burst, steady};
use crate::figures::{Percentiles, number, text};
use crate::plot::{Plot, Series};
use crate::process::{Machine, Stopwatch, TimeSpent};

/// The number of runs for the throughput. The best counts.
const RUNS: usize = 3;
/// The number of events that are sent before a measurement, to open connections and page in code.
pub(super) const WARM_UP_EVENTS: u64 = 500;
/// The number of events for the healthy accounts.
const HEALTHY_EVENTS: u64 = 3_000;
const EVENTS_PER_SECOND: u32 = 150;
/// The number of events for the receivers that hang. They are queued before a first attempt has failed.
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

/// What healthy receivers notice of others that hang: the times from event to POST.
#[derive(Debug, Serialize)]
pub(super) struct Isolation {
    undisturbed: Percentiles,
    beside_a_hanging_one: Percentiles,
    /// A hundred more accounts have a receiver each that hangs.
    beside_a_hundred: Percentiles,
    /// Of one account, which has nine other endpoints whose receiver hangs.
    beside_nine_siblings: Percentiles,
    /// The number of attempts that reached the hanging receiver meanwhile.
    hanging_attempts: u64,
}

/// Measures on a runtime that uses all cores. A deployed instance has a thread of its own, so what waits for the one
/// thread of the other parts would not wait there.
pub(super) async fn isolation(endpoints: u64) -> Result<Isolation, String> {
    let on_all_cores = move || Runtime::new().map_err(text)?.block_on(beside_hanging_ones(endpoints));
    tokio::task::spawn_blocking(on_all_cores).await.map_err(text)?
}

async fn beside_hanging_ones(endpoints: u64) -> Result<Isolation, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..endpoints {
        stack.add(account(number), format!("{}/{number}", receiver.url)).await?;
    }
    let running = stack.functions().await?;
    burst(&stack, endpoints * 4, 0..endpoints).await?;
    receiver.wait_for_arrivals(endpoints * 4).await?;
    receiver.take().await?;
    let healthy = async || healthy(&stack, &receiver, HEALTHY_EVENTS, 0..endpoints).await;
    let hang = async |accounts: Range<u64>| {
        for number in accounts.clone() {
            stack.add(account(number), format!("{}/hang", receiver.url)).await?;
        }
        burst(&stack, HANGING_EVENTS, accounts).await?;
        // Waits until these events are fanned out to deliveries, because deliveries are measured and not the feed.
        Backlog::new(stack.sqs.clone(), stack.feed.clone()).wait_until_empty().await
    };
    let (undisturbed, _) = healthy().await?;
    hang(endpoints..endpoints + 1).await?;
    let (beside_a_hanging_one, hanging_attempts) = healthy().await?;
    hang(endpoints + 1..endpoints + 101).await?;
    let (beside_a_hundred, more) = healthy().await?;
    for _ in 0..9 {
        stack.add(account(0), format!("{}/hang", receiver.url)).await?;
    }
    let (beside_nine_siblings, most) = self::healthy(&stack, &receiver, HEALTHY_EVENTS / 10, 0..1).await?;
    drop(running);
    let hanging_attempts = hanging_attempts + more + most;
    Ok(Isolation { undisturbed, beside_a_hanging_one, beside_a_hundred, beside_nine_siblings, hanging_attempts })
}

/// Delivers events of healthy accounts, spread over as much time as [`HEALTHY_EVENTS`] of them take. Returns how long each
/// took, and how many attempts hung meanwhile.
async fn healthy(
    stack: &MeteredStack,
    receiver: &Receiver,
    events: u64,
    accounts: Range<u64>,
) -> Result<(Percentiles, u64), String> {
    let rate = u64::from(EVENTS_PER_SECOND) * events / HEALTHY_EVENTS;
    steady(stack, events, u32::try_from(rate).map_err(text)?, accounts).await?;
    receiver.wait_for_arrivals(events).await?;
    let arrived = receiver.take().await?;
    let millis = arrived.millis.iter().map(|millis| Duration::from_millis(millis.unsigned_abs()));
    Ok((Percentiles::from_samples(millis.collect()), arrived.hanging))
}

impl Isolation {
    pub(super) fn table(&self) -> String {
        let row = |name: &str, times: &Percentiles| {
            [name.to_owned(), number(times.p50_us / 1e3), number(times.p99_us / 1e3), times.samples.to_string()]
        };
        let rows = [
            row("undisturbed", &self.undisturbed),
            row("beside one that hangs", &self.beside_a_hanging_one),
            row("beside a hundred more", &self.beside_a_hundred),
            row("of one account, beside nine of its own", &self.beside_nine_siblings),
        ];
        let table = number_table(["event to POST, ms", "p50", "p99", "samples"], rows);
        format!("{table}\n\nThose that hang had {} attempts meanwhile.", self.hanging_attempts)
    }

    /// Draws what healthy receivers of other accounts notice.
    pub(super) fn plot(&self) -> Plot {
        let beside = [
            ("undisturbed", &self.undisturbed),
            ("beside one that hangs", &self.beside_a_hanging_one),
            ("beside a hundred more", &self.beside_a_hundred),
        ];
        let series = |name: &str, time: fn(&Percentiles) -> f64| Series {
            name: name.to_owned(),
            values: beside.iter().map(|(_, times)| time(times) / 1e3).collect(),
        };
        Plot {
            title: "From an event to its POST at a healthy receiver",
            unit: "ms",
            x: beside.iter().zip(0_u32..).map(|((name, _), place)| (place.into(), (*name).to_owned())).collect(),
            series: vec![series("median", |times| times.p50_us), series("99th percentile", |times| times.p99_us)],
            is_joined: false,
        }
    }
}
