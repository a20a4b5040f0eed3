//! Many cold starts at once for real: processes that load the listings, on the cores that there are.

use std::time::Duration;

use serde::Serialize;
use types::clock::{Clock, SystemClock};

use super::figures::Figures;
use super::fill::write_base;
use crate::aws_side::AwsProcess;
use crate::market::GeneratedMarket;
use crate::output::{megabytes, number, table};
use crate::percentiles::Percentiles;
use crate::read_model::Load;
use crate::read_model::cold::{self, ReplicaStream};

/// The largest market. All replicas are in memory at the same time.
const MAX_SIZE: u64 = 100_000;

/// What each process took.
#[derive(Debug, Serialize)]
struct ProcessFigures {
    processes: usize,
    wall: Percentiles,
    cpu: Percentiles,
    largest_peak_bytes: u64,
}

/// Starts several processes at once. Each loads the same listings.
pub(super) async fn measure(size: u64, processes: usize) -> Result<Figures, String> {
    let size = size.min(MAX_SIZE);
    let aws = AwsProcess::start_limited().await?;
    let market = GeneratedMarket::new(size, SystemClock::new().now());
    write_base(&aws.environment()?, &market, ReplicaStream::Listings).await?;
    let loads = cold::at_once(&aws, ReplicaStream::Listings, processes).await?;
    let percentiles = |millis: fn(&Load) -> f64| {
        Percentiles::from_samples(loads.iter().map(|load| Duration::from_secs_f64(millis(load) / 1e3)).collect())
    };
    let measured = ProcessFigures {
        processes,
        wall: percentiles(|load| load.wall_ms),
        cpu: percentiles(|load| load.cpu_ms),
        largest_peak_bytes: loads.iter().map(|load| load.peak_bytes).max().unwrap_or_default(),
    };
    let ProcessFigures { wall, cpu, largest_peak_bytes, .. } = &measured;
    let row = [
        processes.to_string(),
        number(wall.p50_us / 1e3),
        number(wall.p99_us / 1e3),
        number(cpu.p50_us / 1e3),
        megabytes(*largest_peak_bytes),
    ];
    let table = table(["processes at once", "wall ms p50", "p99", "CPU ms p50", "peak MB"], [row]);
    let text = format!(
        "{size} listings (at most {MAX_SIZE}, for want of memory), under AWS's limits in real time: all processes and \
         the AWS side share this machine's cores.\n\n{table}"
    );
    Figures::new(&measured, text)
}
