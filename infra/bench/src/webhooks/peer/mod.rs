//! Compares the functions with another webhook server. Both take turns on this machine, under the same load.

mod adapter;
mod message;
mod report;

use std::time::{Duration, Instant};

use crate::output::Output;
use crate::webhooks::load::Load;
use crate::webhooks::receiver::Receiver;
use crate::webhooks::throughput::{WARM_UP_EVENTS, by_functions};
use adapter::Adapter;
use message::Setup;
use report::{Pair, PeerReport, PeerRun};

/// Runs the functions and the server that an adapter operates in turns, and prints the results.
pub(super) async fn run(command: &str, pairs: u64, load: Load, output: Output) -> Result<(), String> {
    let mut measured = Vec::new();
    for _ in 0..pairs {
        let functions = Box::pin(by_functions(load)).await?;
        let peer = Box::pin(by_peer(command, load)).await?;
        measured.push(Pair::new(functions, peer));
    }
    let report = PeerReport::new(load, measured);
    output.part(|| report.to_string());
    output.whole(&report)
}

/// Delivers the events of a load by the other server.
async fn by_peer(command: &str, load: Load) -> Result<PeerRun, String> {
    let receiver = Receiver::start().await?;
    let setup = Setup::new(&receiver.url, load.endpoints);
    let mut adapter = Adapter::start(command, &setup).await?;
    adapter.send(WARM_UP_EVENTS, load.endpoints).await?;
    receiver.wait_for_arrivals(WARM_UP_EVENTS).await?;
    receiver.take().await?;
    let (cpu, receiver_cpu, begun) = (adapter.cpu()?, receiver.cpu(), Instant::now());
    adapter.send(load.events, load.endpoints).await?;
    receiver.wait_for_arrivals(load.events).await?;
    let (seconds, now) = (begun.elapsed().as_secs_f64(), adapter.cpu()?);
    let each = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() * 1e6 / load.events as f64;
    let run = PeerRun {
        deliveries_per_second: load.events as f64 / seconds,
        adapter_us: each(now.adapter, cpu.adapter),
        processes_us: each(now.processes, cpu.processes),
        receiver_us: each(receiver.cpu(), receiver_cpu),
        events: load.events,
        arrived: receiver.take().await?.millis.len() as u64,
    };
    adapter.finish().await?;
    Ok(run)
}
