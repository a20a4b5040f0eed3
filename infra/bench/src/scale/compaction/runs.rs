//! The runs of a compaction that make a base from the entities, in a process of their own, as in a function's instance.

use std::sync::Arc;

use aws_sdk_dynamodb::config::SharedInterceptor;
use base::{Compacted, Compaction, RebuildLimits};
use local::meter::CostMeter;
use market::{Log, Market};
use objects::Objects;
use platform::aws::{Environment, Patience, required};
use platform::resources::{BASE_BUCKET_VARIABLE, Table};
use serde::{Deserialize, Serialize};
use types::clock::SystemClock;
use types::records::PublicListing;

use super::watch::Watch;
use crate::aws_side::AwsProcess;
use crate::child::child_command;
use crate::cli::ScaleOptions;
use crate::cpu::Stopwatch;
use crate::memory::Memory;
use crate::output::text;

/// The name of the subcommand.
const SUBCOMMAND: &str = "rebuild";

/// What all runs together have made and taken.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rebuilt {
    pub(super) runs: Vec<RebuildRun>,
    /// The records of the base.
    pub(super) records: u64,
    /// The parts of the base.
    pub(super) parts: usize,
    /// The objects that were put, those of sorted runs included.
    pub(super) objects: u64,
    pub(super) object_bytes: u64,
    /// The most memory that the process ever had resident, the program itself included.
    pub(super) peak_bytes: u64,
}

/// What one run took.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RebuildRun {
    pub(super) cpu_ms: f64,
    pub(super) wall_ms: f64,
    pub(super) read_units: f64,
}

/// Makes the base of the listings in a process of its own.
pub(super) async fn in_own_process(aws: &AwsProcess, options: &ScaleOptions) -> Result<Rebuilt, String> {
    let read_units = options.read_units.unwrap_or(u32::MAX);
    let mut command = child_command(SUBCOMMAND)?;
    command.args([options.compact_memory_mb.to_string(), read_units.to_string()]);
    let output = command.env_clear().envs(aws.variables.iter()).output().await.map_err(text)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("rebuild: {error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs as the process that makes the base.
pub(crate) async fn rebuild(memory_mb: usize, read_units: u32) -> Result<(), String> {
    let limits = RebuildLimits {
        buffer_bytes: compact::buffer_bytes(memory_mb),
        read_units_per_second: read_units,
        ..RebuildLimits::default()
    };
    let rebuilt = run_until_written(limits).await?;
    println!("{}", serde_json::to_string(&rebuilt).map_err(text)?);
    Ok(())
}

/// Lets run after run do its part until the base is in place.
async fn run_until_written(limits: RebuildLimits) -> Result<Rebuilt, String> {
    let (watch, meter) = (Watch::default(), CostMeter::default());
    let compaction = compaction(&watch, &meter)?.with_limits(limits);
    let mut runs = Vec::new();
    loop {
        let stopwatch = Stopwatch::start();
        let outcome = compaction.run().await.map_err(text)?;
        let spent = stopwatch.spent();
        runs.push(RebuildRun {
            cpu_ms: spent.cpu.as_secs_f64() * 1e3,
            wall_ms: spent.wall.as_secs_f64() * 1e3,
            read_units: meter.take().read_units,
        });
        match outcome {
            Compacted::Reading { .. } => {}
            Compacted::Written { records, parts, from_entities: true } => {
                let (objects, object_bytes) = watch.puts();
                let peak_bytes = Memory::now().peak;
                return Ok(Rebuilt { runs, records, parts, objects, object_bytes, peak_bytes });
            }
            other => return Err(format!("a run did something else: {other:?}")),
        }
    }
}

/// Returns the compaction of the stack that the environment names.
fn compaction(watch: &Watch, meter: &CostMeter) -> Result<Compaction<PublicListing>, String> {
    let lookup = |name: &str| std::env::var(name).ok();
    let environment = Environment::read(&lookup).map_err(text)?;
    let environment = environment.watched_by(SharedInterceptor::new(watch.clone()));
    let [table, bucket] = required(&lookup, [Table::Market.variable(), BASE_BUCKET_VARIABLE]).map_err(text)?;
    let objects = Objects::new(objects::client(&environment, Patience::Bulk), bucket, Patience::Bulk);
    let market = Market::new(meter.attach(&environment.dynamodb(Patience::Bulk)), table);
    Ok(Compaction::new(Log::new(market), objects, Arc::new(SystemClock::new())))
}
