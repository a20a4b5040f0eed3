//! The results, as one document and as tables.

use serde::Serialize;

use super::cold::{ReplicaStream, Work};
use super::index::IndexTimes;
use super::load::Load;
use super::request::{RequestTimes, Warm};
use super::subject::Depth;
use super::usual::Cost;
use crate::machine::Machine;
use crate::output::{megabytes, number, table};
use crate::percentiles::Percentiles;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct ReadModelReport {
    pub(super) machine: Machine,
    pub(super) markets: Vec<MarketReport>,
}

/// What was measured of a market of one size.
#[derive(Debug, Serialize)]
pub(super) struct MarketReport {
    /// The number of items, which is also the number of listings.
    pub(super) records: u64,
    /// How long it took to store them in our tables and in those of the usual way, side by side.
    pub(super) fill_seconds: f64,
    pub(super) cold: Vec<ColdReport>,
    pub(super) streams: Vec<StreamReport>,
}

/// What it took to load one replica, or to pack its base.
#[derive(Debug, Serialize)]
pub(super) struct ColdReport {
    pub(super) stream: ReplicaStream,
    pub(super) work: Work,
    #[serde(flatten)]
    pub(super) load: Load,
}

/// What was measured of one replica.
#[derive(Debug, Serialize)]
pub(super) struct StreamReport {
    pub(super) stream: ReplicaStream,
    pub(super) warm: Vec<WarmReport>,
    pub(super) kinds: Vec<KindReport>,
}

/// What was measured of one request, repeated under one condition.
#[derive(Debug, Serialize)]
pub(super) struct WarmReport {
    pub(super) when: &'static str,
    #[serde(flatten)]
    pub(super) warm: Warm,
}

/// What was measured of one kind of question.
#[derive(Debug, Serialize)]
pub(super) struct KindReport {
    pub(super) kind: String,
    /// The largest total of its questions.
    pub(super) total: usize,
    pub(super) index: Vec<IndexTimes>,
    pub(super) request: Vec<RequestTimes>,
    pub(super) usual: Vec<UsualReport>,
}

/// What one question of a kind costs in the usual way.
#[derive(Debug, Serialize)]
pub(super) struct UsualReport {
    pub(super) depth: Depth,
    #[serde(flatten)]
    pub(super) cost: Cost,
}

impl MarketReport {
    /// Formats the loads of both replicas and the compactions of both streams.
    pub(super) fn cold_table(&self) -> String {
        let header = ["whole stream", "from", "CPU ms", "wall ms", "calls", "read units", "bytes/record", "peak MB"];
        let rows = self.cold.iter().map(|ColdReport { stream, work, load }| {
            [
                stream.as_str().to_owned(),
                work.as_str().to_owned(),
                number(load.cpu_ms),
                number(load.wall_ms),
                load.bill.all_calls().to_string(),
                number(load.bill.read_units),
                number(load.resident_bytes as f64 / self.records as f64),
                megabytes(load.peak_bytes),
            ]
        });
        format!(
            "{} items and as many listings, stored in {} s\n\n{}",
            self.records,
            number(self.fill_seconds),
            table(header, rows)
        )
    }
}

impl StreamReport {
    /// Formats every kind of question, with the first, middle and last page side by side.
    pub(super) fn kinds_table(&self) -> String {
        let header = [
            self.stream.as_str(),
            "total",
            "index p50",
            "p99 first",
            "middle",
            "last",
            "request p50",
            "p99 first",
            "middle",
            "last",
            "usual ms",
            "calls",
            "read units",
            "times ours",
        ];
        let rows = self.kinds.iter().map(KindReport::row);
        format!("{}\n{}", table(header, rows), self.worst())
    }

    /// Formats a line about the slowest kinds.
    fn worst(&self) -> String {
        let index = self.kinds.iter().flat_map(|kind| kind.index.iter().map(|at| (&at.cpu, &kind.kind)));
        let request = self.kinds.iter().flat_map(|kind| kind.request.iter().map(|at| (&at.cpu, &kind.kind)));
        let line = |what: &str, worst: Option<(&Percentiles, &String)>| {
            worst.map_or_else(String::new, |(cpu, kind)| format!("{what} {} µs ({kind})", number(cpu.p99_us)))
        };
        format!(
            "CPU µs, pages of 100. Worst p99: {}, {}.",
            line("index", worst_of(index)),
            line("whole request", worst_of(request)),
        )
    }

    /// Formats what warm requests take, and their store calls.
    pub(super) fn warm_table(&self) -> String {
        let header = ["warm request", "CPU µs p50", "p99", "wall µs p50", "body", "calls", "read units", "write units"];
        let rows = self.warm.iter().map(|WarmReport { when, warm }| {
            let each = |sum: f64| number(sum / warm.cpu.samples as f64);
            let calls: Vec<_> =
                warm.bill.calls.iter().map(|(name, calls)| format!("{} {name}", each(*calls as f64))).collect();
            [
                (*when).to_owned(),
                number(warm.cpu.p50_us),
                number(warm.cpu.p99_us),
                number(warm.wall.p50_us),
                warm.body_bytes.to_string(),
                calls.join(", "),
                each(warm.bill.read_units),
                each(warm.bill.write_units),
            ]
        });
        table(header, rows)
    }
}

impl KindReport {
    fn row(&self) -> [String; 14] {
        let at = |place: usize| self.index.get(place).map(|at| at.cpu).unwrap_or_default();
        let request = |place: usize| self.request.get(place).map(|at| at.cpu).unwrap_or_default();
        let usual = self.usual.iter().find(|usual| usual.depth == Depth::Middle);
        let ours = self.request.iter().find(|at| at.depth == Depth::Middle).map(|at| at.wall.p50_us / 1e3);
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        [
            self.kind.clone(),
            self.total.to_string(),
            number(at(1).p50_us),
            number(at(0).p99_us),
            number(at(1).p99_us),
            number(at(2).p99_us),
            number(request(1).p50_us),
            number(request(0).p99_us),
            number(request(1).p99_us),
            number(request(2).p99_us),
            show(usual.map(|usual| usual.cost.wall_ms)),
            usual.map_or_else(|| "-".to_owned(), |usual| usual.cost.calls.to_string()),
            show(usual.map(|usual| usual.cost.read_units)),
            show(usual.zip(ours).map(|(usual, ours)| usual.cost.wall_ms / ours)),
        ]
    }
}

fn worst_of<'a>(all: impl Iterator<Item = (&'a Percentiles, &'a String)>) -> Option<(&'a Percentiles, &'a String)> {
    all.max_by(|(a, _), (b, _)| a.p99_us.total_cmp(&b.p99_us))
}
