//! Compares the functions with another webhook server, or with those of another build of this program. Both sides take
//! turns on this machine, under the same load.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use terminal::{Output, number_table};
use tokio::process::Command;

use super::adapter::{Adapter, Setup};
use super::receiver::Receiver;
use super::stack::Load;
use super::throughput::{Run, Throughput, WARM_UP_EVENTS};
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

/// All turns with another build.
#[derive(Debug, Serialize)]
struct BuildReport {
    machine: Machine,
    pairs: Vec<BuildPair>,
    /// The rate, as a multiple of the older one.
    rate_ratio: Ratios,
    /// The CPU time of the functions without their stores, as a multiple of the older one.
    service_ratio: Ratios,
}

/// A turn of each build.
#[derive(Debug, Serialize)]
struct BuildPair {
    this: BuildRun,
    older: BuildRun,
    rate_ratio: f64,
    service_ratio: f64,
}

/// The best run of the functions, which every build prints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct BuildRun {
    deliveries_per_second: f64,
    service_us: f64,
    stores_us: f64,
}

/// Runs this build and the older one in turns, and prints the results.
pub(super) async fn with_build(older: &Path, pairs: u64, load: Load, output: Output) -> Result<(), String> {
    let mut measured = Vec::new();
    for _ in 0..pairs {
        let this = Box::pin(Throughput::measure(load)).await?.functions;
        let this = BuildRun {
            deliveries_per_second: this.deliveries_per_second,
            service_us: this.service_us,
            stores_us: this.stores_us,
        };
        let older = by_older(older, load).await?;
        measured.push(BuildPair {
            rate_ratio: this.deliveries_per_second / older.deliveries_per_second,
            service_ratio: this.service_us / older.service_us,
            this,
            older,
        });
    }
    let report = BuildReport {
        machine: Machine::this(),
        rate_ratio: Ratios::new(measured.iter().map(|pair| pair.rate_ratio)),
        service_ratio: Ratios::new(measured.iter().map(|pair| pair.service_ratio)),
        pairs: measured,
    };
    output.part(|| report.table());
    Ok(output.whole(&report)?)
}

/// Returns what the older build measures.
async fn by_older(binary: &Path, load: Load) -> Result<BuildRun, String> {
    let (events, endpoints) = (load.events.to_string(), load.endpoints.to_string());
    let mut command = Command::new(binary);
    command.args(["webhooks", "--only", "throughput", "--json", "--events", &events, "--endpoints", &endpoints]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let failed = |error: std::io::Error| format!("{}: {error}", binary.display());
    let output = command.spawn().map_err(failed)?.wait_with_output().await.map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{} webhooks: {}", binary.display(), output.status));
    }
    let printed = |error: serde_json::Error| {
        format!("{} printed no document with throughput.functions: {error}", binary.display())
    };
    let mut document: Value = serde_json::from_slice(&output.stdout).map_err(printed)?;
    serde_json::from_value(document["throughput"]["functions"].take()).map_err(printed)
}

impl BuildReport {
    fn table(&self) -> String {
        let Self { machine, pairs, rate_ratio, service_ratio } = self;
        let rows = (1_u64..).zip(pairs).map(|(pair, BuildPair { this, older, rate_ratio, service_ratio })| {
            [
                pair.to_string(),
                number(this.deliveries_per_second),
                number(older.deliveries_per_second),
                format!("{rate_ratio:.2}"),
                number(this.service_us),
                number(older.service_us),
                format!("{service_ratio:.2}"),
            ]
        });
        let header = ["pair", "a second", "older", "ratio", "service CPU µs", "older", "ratio"];
        format!(
            "{machine}\n\n{}\n\nRate: {rate_ratio} times the older one. Service CPU: {service_ratio} times the older one.",
            number_table(header, rows),
        )
    }
}
