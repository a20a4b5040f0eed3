//! Measures how fast events are delivered, by the functions and by the bare loop in turn. Events are sent as fast as
//! the feed accepts them.

use std::num::NonZeroU32;
use std::time::Duration;

use local::meter::Bill;
use serde::Serialize;

use super::load::Load;
use super::receiver::Receiver;
use super::stacks::Stacks;
use crate::cpu::{Stopwatch, TimeSpent};

/// The number of runs of each way. The best counts.
const RUNS_PER_WAY: usize = 3;
/// The number of events that are sent before a measurement, to open connections and page in code.
pub(super) const WARM_UP_EVENTS: u64 = 500;

/// The results of both ways.
#[derive(Debug, Serialize)]
pub(super) struct Throughput {
    /// The number of stacks side by side, each with embedded stores of its own.
    pub(super) stores: u64,
    pub(super) functions: Run,
    pub(super) bare: Run,
}

/// One run of one way.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) deliveries_per_second: f64,
    pub(super) service_us: f64,
    pub(super) stores_us: f64,
    pub(super) receiver_us: f64,
    pub(super) events: u64,
    /// The calls of the functions. Those of the bare loop are not counted.
    pub(super) bill: Bill,
}

pub(super) async fn measure(load: Load) -> Result<Throughput, String> {
    let (mut functions, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS_PER_WAY {
        functions.push(Box::pin(by_functions(load)).await?);
        bare.push(Box::pin(by_bare_loop(load)).await?);
    }
    let best = |runs: Vec<Run>| {
        let fastest = runs.into_iter().max_by(|a, b| a.deliveries_per_second.total_cmp(&b.deliveries_per_second));
        fastest.ok_or("nothing was run")
    };
    Ok(Throughput { stores: load.stores, functions: best(functions)?, bare: best(bare)? })
}

/// Delivers the events of a load by the functions, on fresh stacks.
pub(super) async fn by_functions(load: Load) -> Result<Run, String> {
    let receiver = Receiver::start().await?;
    let stacks = Stacks::start(load, &receiver.url).await?;
    let running = stacks.functions(NonZeroU32::MIN).await?;
    stacks.burst(WARM_UP_EVENTS).await?;
    receiver.wait_for_arrivals(WARM_UP_EVENTS).await?;
    receiver.take().await?;
    stacks.take_bill();
    let begun = RunStart::now(&stacks, &receiver);
    stacks.burst(load.events).await?;
    receiver.wait_for_arrivals(load.events).await?;
    let run = begun.finish(&stacks, &receiver, load.events, stacks.take_bill());
    drop(running);
    Ok(run)
}

async fn by_bare_loop(load: Load) -> Result<Run, String> {
    let receiver = Receiver::start().await?;
    let stacks = Stacks::start(load, &receiver.url).await?;
    let loops = stacks.bare_loops(&receiver.url)?;
    stacks.burst(WARM_UP_EVENTS).await?;
    stacks.deliver_by(&loops, WARM_UP_EVENTS).await?;
    receiver.take().await?;
    let begun = RunStart::now(&stacks, &receiver);
    tokio::try_join!(stacks.burst(load.events), stacks.deliver_by(&loops, load.events))?;
    Ok(begun.finish(&stacks, &receiver, load.events, Bill::default()))
}

/// The CPU time of all processes at the beginning of a run.
struct RunStart {
    stopwatch: Stopwatch,
    stores: Duration,
    receiver: Duration,
}

impl RunStart {
    fn now(stacks: &Stacks, receiver: &Receiver) -> Self {
        Self { stores: stacks.cpu(), receiver: receiver.cpu(), stopwatch: Stopwatch::start() }
    }

    fn finish(self, stacks: &Stacks, receiver: &Receiver, events: u64, bill: Bill) -> Run {
        let TimeSpent { cpu, wall } = self.stopwatch.spent();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / events as f64;
        Run {
            deliveries_per_second: events as f64 / wall.as_secs_f64(),
            service_us: each(cpu),
            stores_us: each(stacks.cpu().saturating_sub(self.stores)),
            receiver_us: each(receiver.cpu().saturating_sub(self.receiver)),
            events,
            bill,
        }
    }
}
