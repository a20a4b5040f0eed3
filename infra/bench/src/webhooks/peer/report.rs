//! The results of the comparison, as one document and as a table.

use std::fmt;

use serde::Serialize;

use crate::machine::Machine;
use crate::output::{number, table};
use crate::webhooks::load::Load;
use crate::webhooks::ratios::Ratios;
use crate::webhooks::throughput::Run;

/// All turns.
#[derive(Debug, Serialize)]
pub(super) struct PeerReport {
    machine: Machine,
    stores: u64,
    endpoints: u64,
    events: u64,
    pairs: Vec<Pair>,
    /// The rate of the functions, as a multiple of the peer's.
    rate_ratio: Ratios,
    /// The CPU time of the functions and their stores, as a multiple of the peer's.
    cpu_ratio: Ratios,
}

/// A turn of each side.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    functions: Run,
    peer: PeerRun,
    rate_ratio: f64,
    cpu_ratio: f64,
}

/// A turn of the other server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PeerRun {
    pub(super) deliveries_per_second: f64,
    pub(super) adapter_us: f64,
    /// The CPU time of the processes that the adapter has listed.
    pub(super) processes_us: f64,
    pub(super) receiver_us: f64,
    pub(super) events: u64,
    /// The number of deliveries that arrived. There are more than events if some came twice.
    pub(super) arrived: u64,
}

impl Pair {
    pub(super) fn new(functions: Run, peer: PeerRun) -> Self {
        Self {
            rate_ratio: functions.deliveries_per_second / peer.deliveries_per_second,
            cpu_ratio: (functions.service_us + functions.stores_us) / (peer.adapter_us + peer.processes_us),
            functions,
            peer,
        }
    }
}

impl PeerReport {
    pub(super) fn new(load: Load, pairs: Vec<Pair>) -> Self {
        Self {
            machine: Machine::this(),
            stores: load.stores,
            endpoints: load.endpoints,
            events: load.events,
            rate_ratio: Ratios::new(pairs.iter().map(|pair| pair.rate_ratio)),
            cpu_ratio: Ratios::new(pairs.iter().map(|pair| pair.cpu_ratio)),
            pairs,
        }
    }
}

impl fmt::Display for PeerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, stores, endpoints, events, pairs, rate_ratio, cpu_ratio } = self;
        let header =
            ["pair", "a second", "peer", "ratio", "service CPU µs", "stores", "adapter", "peer's processes", "ratio"];
        let rows = (1_u64..).zip(pairs).map(|(pair, Pair { functions, peer, rate_ratio, cpu_ratio })| {
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
        write!(
            f,
            "{machine}, {events} events to {endpoints} endpoints, embedded stores: {stores}\n\n{}\n\nRate: {rate_ratio} times the peer's. CPU time: {cpu_ratio} times the peer's.",
            table(header, rows),
        )
    }
}
