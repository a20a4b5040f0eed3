//! CPU time and memory of replicas, and of questions to them, in real time.

use serde::Serialize;
use types::clock::{Clock, SystemClock};

use super::figures::Figures;
use super::fill::write_base;
use crate::aws_side::AwsProcess;
use crate::market::GeneratedMarket;
use crate::output::{megabytes, number, table};
use crate::percentiles::Percentiles;
use crate::read_model::cold::{self, ReplicaStream, Work};
use crate::read_model::{KindTimes, ask_index};

/// How often a load is repeated. The best one counts.
const TRIES: usize = 3;

/// What one replica takes.
#[derive(Debug, Serialize)]
struct ReplicaFigures {
    stream: ReplicaStream,
    cpu_ms: f64,
    wall_ms: f64,
    resident_bytes: u64,
    peak_bytes: u64,
    kinds: Vec<KindTimes>,
}

/// Loads each replica in a process of its own, and asks it every kind of question.
pub(super) async fn measure(size: u64) -> Result<Figures, String> {
    let mut measured = Vec::with_capacity(ReplicaStream::ALL.len());
    for stream in ReplicaStream::ALL {
        measured.push(replica(size, stream).await?);
    }
    let tables: Vec<String> = measured.iter().map(|replica| replica.text(size)).collect();
    Figures::new(&measured, tables.join("\n\n"))
}

async fn replica(size: u64, stream: ReplicaStream) -> Result<ReplicaFigures, String> {
    let market = GeneratedMarket::new(size, SystemClock::new().now());
    let aws = AwsProcess::start().await?;
    write_base(&aws.environment()?, &market, stream).await?;
    let load = cold::best(&aws, stream, Work::Base, TRIES).await?;
    let kinds = ask_index(&aws, &market, stream).await?;
    Ok(ReplicaFigures {
        stream,
        cpu_ms: load.cpu_ms,
        wall_ms: load.wall_ms,
        resident_bytes: load.resident_bytes,
        peak_bytes: load.peak_bytes,
        kinds,
    })
}

impl ReplicaFigures {
    fn text(&self, size: u64) -> String {
        let header = [self.stream.as_str(), "total", "p50 middle", "p99 first", "p99 middle", "p99 last"];
        let rows = self.kinds.iter().map(|KindTimes { kind, total, cpu }| {
            let at = |place: usize| cpu.get(place).copied().unwrap_or_default();
            let Percentiles { p50_us, p99_us, .. } = at(1);
            let [first, last] = [0, 2].map(|place| at(place).p99_us);
            [kind.clone(), total.to_string(), number(p50_us), number(first), number(p99_us), number(last)]
        });
        format!(
            "{size} records of {} in a base that was written below the API: loaded in {} ms of CPU time ({} ms), {} MB \
             resident, {} MB at most. CPU µs of the index:\n\n{}",
            self.stream.as_str(),
            number(self.cpu_ms),
            number(self.wall_ms),
            megabytes(self.resident_bytes),
            megabytes(self.peak_bytes),
            table(header, rows)
        )
    }
}
