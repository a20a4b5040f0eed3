//! Measures how fast events are delivered, by the functions and by the bare loop in turn. Events are sent as fast as
//! the feed accepts them.

use std::num::NonZeroU32;
use std::time::Duration;

use local::meter::Bill;
use serde::Serialize;

use super::bare::BareLoop;
use super::load::{account, burst};
use super::receiver::Receiver;
use super::stack::MeteredStack;
use crate::cpu::{Stopwatch, TimeSpent};

/// The number of runs of each way. The best counts.
const RUNS_PER_WAY: usize = 3;
/// The number of events that are sent before a measurement, to open connections and page in code.
const WARM_UP_EVENTS: u64 = 500;

/// The results of both ways.
#[derive(Debug, Serialize)]
pub(super) struct Throughput {
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

pub(super) async fn measure(events: u64, endpoints: u64) -> Result<Throughput, String> {
    let (mut functions, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS_PER_WAY {
        functions.push(by_functions(events, endpoints).await?);
        bare.push(by_bare_loop(events, endpoints).await?);
    }
    let best = |runs: Vec<Run>| {
        let fastest = runs.into_iter().max_by(|a, b| a.deliveries_per_second.total_cmp(&b.deliveries_per_second));
        fastest.ok_or("nothing was run")
    };
    Ok(Throughput { functions: best(functions)?, bare: best(bare)? })
}

async fn by_functions(events: u64, endpoints: u64) -> Result<Run, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..endpoints {
        stack.add(account(number), format!("{}/{number}", receiver.url)).await?;
    }
    let running = stack.functions(NonZeroU32::MIN).await?;
    burst(&stack, WARM_UP_EVENTS, 0..endpoints).await?;
    receiver.wait_for_arrivals(WARM_UP_EVENTS).await?;
    receiver.take().await?;
    stack.meter.take();
    let begun = RunStart::now(&stack, &receiver);
    burst(&stack, events, 0..endpoints).await?;
    receiver.wait_for_arrivals(events).await?;
    let run = begun.finish(&stack, &receiver, events, stack.meter.take());
    drop(running);
    Ok(run)
}

async fn by_bare_loop(events: u64, endpoints: u64) -> Result<Run, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    for number in 0..endpoints {
        stack.add(account(number), format!("{}/{number}", receiver.url)).await?;
    }
    let bare = BareLoop::new(&stack, receiver.url.clone())?;
    burst(&stack, WARM_UP_EVENTS, 0..endpoints).await?;
    bare.run(WARM_UP_EVENTS).await?;
    receiver.take().await?;
    let begun = RunStart::now(&stack, &receiver);
    tokio::try_join!(burst(&stack, events, 0..endpoints), bare.run(events))?;
    Ok(begun.finish(&stack, &receiver, events, Bill::default()))
}

/// The CPU time of all processes at the beginning of a run.
struct RunStart {
    stopwatch: Stopwatch,
    stores: Duration,
    receiver: Duration,
}

impl RunStart {
    fn now(stack: &MeteredStack, receiver: &Receiver) -> Self {
        Self { stores: stack.aws.cpu(), receiver: receiver.cpu(), stopwatch: Stopwatch::start() }
    }

    fn finish(self, stack: &MeteredStack, receiver: &Receiver, events: u64, bill: Bill) -> Run {
        let TimeSpent { cpu, wall } = self.stopwatch.spent();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / events as f64;
        Run {
            deliveries_per_second: events as f64 / wall.as_secs_f64(),
            service_us: each(cpu),
            stores_us: each(stack.aws.cpu().saturating_sub(self.stores)),
            receiver_us: each(receiver.cpu().saturating_sub(self.receiver)),
            events,
            bill,
        }
    }
}
