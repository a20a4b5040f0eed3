//! Compares the functions with another webhook server. Both take turns on this machine, under the same load.

use std::time::{Duration, Instant};

use serde::Serialize;
use terminal::{Output, number_table};

use super::adapter::{Adapter, Setup};
use super::receiver::Receiver;
use super::stack::Load;
use super::throughput::{Run, WARM_UP_EVENTS};
use crate::figures::{Ratios, number};
use crate::process::Machine;

/// All turns with another server.
#[derive(Debug, Serialize)]
struct PeerReport {
    machine: Machine,
    stores: u64,
    endpoints: u64,
    events: u64,
    pairs: Vec<PeerPair>,
    /// The rate of the functions, as a multiple of the peer's.
    rate_ratio: Ratios,
    /// The CPU time of the functions and their stores, as a multiple of the peer's.
    cpu_ratio: Ratios,
}

/// A turn of each server.
#[derive(Debug, Serialize)]
struct PeerPair {
    functions: Run,
    peer: PeerRun,
    rate_ratio: f64,
    cpu_ratio: f64,
}

/// A turn of the other server.
#[derive(Clone, Debug, Serialize)]
struct PeerRun {
    deliveries_per_second: f64,
    adapter_us: f64,
    /// The CPU time of the processes that the adapter has listed.
    processes_us: f64,
    receiver_us: f64,
    events: u64,
    /// The number of deliveries that arrived. There are more than events if some came twice.
    arrived: u64,
}

/// Runs the functions and the server that an adapter operates in turns, and prints the results.
pub(super) async fn with_peer(command: &str, pairs: u64, load: Load, output: Output) -> Result<(), String> {
    let mut measured = Vec::new();
    for _ in 0..pairs {
        let functions = Box::pin(Run::measure(load)).await?;
        let peer = Box::pin(by_peer(command, load)).await?;
        measured.push(PeerPair {
            rate_ratio: functions.deliveries_per_second / peer.deliveries_per_second,
            cpu_ratio: (functions.service_us + functions.stores_us) / (peer.adapter_us + peer.processes_us),
            functions,
            peer,
        });
    }
    let report = PeerReport {
        machine: Machine::this(),
        stores: load.stores,
        endpoints: load.endpoints,
        events: load.events,
        rate_ratio: Ratios::new(measured.iter().map(|pair| pair.rate_ratio)),
        cpu_ratio: Ratios::new(measured.iter().map(|pair| pair.cpu_ratio)),
        pairs: measured,
    };
    output.part(|| report.table());
    Ok(output.whole(&report)?)
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

impl PeerReport {
    fn table(&self) -> String {
        let Self { machine, stores, endpoints, events, pairs, rate_ratio, cpu_ratio } = self;
        let header =
            ["pair", "a second", "peer", "ratio", "service CPU µs", "stores", "adapter", "peer's processes", "ratio"];
        let rows = (1_u64..).zip(pairs).map(|(pair, PeerPair { functions, peer, rate_ratio, cpu_ratio })| {
            [
                pair.to_string(),
                number(functions.deliveries_per_second),
                number(peer.deliveries_per_second),
                format!("{rate_ratio:.2}"),
                number(functions.service_us),
                number(functions.stores_us),
                number(peer.adapter_us),
                number(peer.processes_us),
                format!("{cpu_ratio:.2}"),
            ]
        });
        format!(
            "{machine}, {events} events to {endpoints} endpoints, embedded stores: {stores}\n\n{}\n\nRate: {rate_ratio} times the peer's. CPU time: {cpu_ratio} times the peer's.",
            number_table(header, rows),
        )
    }
}
