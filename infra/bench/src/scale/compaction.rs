//! Memory and time of a compaction from the entities, in real time.

use indicatif::ProgressBar;
use serde::Serialize;
use types::clock::{Clock, SystemClock};

use super::figures::Figures;
use crate::aws_side::AwsProcess;
use crate::market::{GeneratedMarket, fill};
use crate::output::{megabytes, number, table};
use crate::read_model::cold::{self, ReplicaStream, Work};

/// The largest market that is stored in the embedded tables. It takes ten minutes.
const MAX_SIZE: u64 = 1_000_000;

/// What the first compaction of a stream takes.
#[derive(Debug, Serialize)]
struct CompactionFigures {
    stream: ReplicaStream,
    cpu_ms: f64,
    wall_ms: f64,
    read_units: f64,
    peak_bytes: u64,
}

/// Fills both streams and compacts them, each in a process of its own.
pub(super) async fn measure(size: u64) -> Result<Figures, String> {
    let size = size.min(MAX_SIZE);
    let market = GeneratedMarket::new(size, SystemClock::new().now());
    let aws = AwsProcess::start().await?;
    fill(&aws.admin()?, &market, &ProgressBar::hidden()).await?;
    let mut measured = Vec::with_capacity(ReplicaStream::ALL.len());
    for stream in ReplicaStream::ALL {
        let load = cold::best(&aws, stream, Work::Compaction, 1).await?;
        measured.push(CompactionFigures {
            stream,
            cpu_ms: load.cpu_ms,
            wall_ms: load.wall_ms,
            read_units: load.bill.read_units,
            peak_bytes: load.peak_bytes,
        });
    }
    let header = ["compaction", "CPU ms", "wall ms", "read units", "peak MB"];
    let rows = measured.iter().map(|compaction| {
        [
            compaction.stream.as_str().to_owned(),
            number(compaction.cpu_ms),
            number(compaction.wall_ms),
            number(compaction.read_units),
            megabytes(compaction.peak_bytes),
        ]
    });
    let table = table(header, rows);
    let text = format!(
        "{size} items and as many listings (at most {MAX_SIZE}, because the embedded tables take too long to fill), \
         from the entities.\n\n{table}"
    );
    Figures::new(&measured, text)
}
