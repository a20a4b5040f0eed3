//! Cold loads. A process that has just started builds one replica, as a function does in its init phase, or packs the
//! base for it, as `compact` does. It does nothing else.

use std::sync::Arc;

use base::{Compaction, RebuildLimits};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use local::meter::CostMeter;
use market::{Log, Market};
use objects::Objects;
use platform::aws::{Environment, Patience, required};
use platform::resources::{BASE_BUCKET_VARIABLE, Table};
use replica::{Catalog, Listings, Replica, View};
use serde::Serialize;
use types::clock::SystemClock;

use super::load::{Load, LoadMeasurement};
use crate::aws_side::AwsProcess;
use crate::child::child_command;
use crate::output::text;

/// The name of the subcommand.
const SUBCOMMAND: &str = "cold-load";

/// The stream of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReplicaStream {
    Catalog,
    Listings,
}

/// What a cold process does with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// Builds the replica from the packed base.
    Base,
    /// Builds the replica from the entities, because there is no base. It waits as long as a bulk job does: sixteen
    /// pages are asked for at once, and the embedded DynamoDB may take longer than the second that a function waits.
    Entities,
    /// Packs the base from the entities.
    Compaction,
}

impl ReplicaStream {
    pub(crate) const ALL: [Self; 2] = [Self::Listings, Self::Catalog];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Listings => "listings",
        }
    }
}

impl Work {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Entities => "entities",
            Self::Compaction => "compaction",
        }
    }
}

/// Returns the best of several tries by CPU time. Each try has a process of its own.
pub(crate) async fn best(aws: &AwsProcess, stream: ReplicaStream, work: Work, tries: usize) -> Result<Load, String> {
    let mut best = once(aws, stream, work).await?;
    for _ in 1..tries {
        let load = once(aws, stream, work).await?;
        if load.cpu_ms < best.cpu_ms {
            best = load;
        }
    }
    Ok(best)
}

/// Loads a stream in several processes at the same time.
pub(crate) async fn at_once(aws: &AwsProcess, stream: ReplicaStream, processes: usize) -> Result<Vec<Load>, String> {
    try_join_all((0..processes).map(|_| once(aws, stream, Work::Base))).await
}

async fn once(aws: &AwsProcess, stream: ReplicaStream, work: Work) -> Result<Load, String> {
    let mut command = child_command(SUBCOMMAND)?;
    command.args([stream.as_str(), work.as_str()]).env_clear().envs(aws.variables.iter());
    let output = command.output().await.map_err(text)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cold load: {error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs as the process that loads or packs.
pub(crate) async fn run(stream: ReplicaStream, work: Work) -> Result<(), String> {
    let load = match stream {
        ReplicaStream::Catalog => load::<Catalog>(work).await?,
        ReplicaStream::Listings => load::<Listings>(work).await?,
    };
    println!("{}", serde_json::to_string(&load).map_err(text)?);
    Ok(())
}

async fn load<V: View>(work: Work) -> Result<Load, String> {
    let lookup = |name: &str| std::env::var(name).ok();
    let meter = CostMeter::default();
    let measurement = LoadMeasurement::start(&meter);
    let patience = if work == Work::Base { Patience::Request } else { Patience::Bulk };
    let environment = Environment::read(&lookup).map_err(text)?;
    let client = environment.dynamodb(patience);
    let [table, bucket] = required(&lookup, [Table::Market.variable(), BASE_BUCKET_VARIABLE]).map_err(text)?;
    let objects = Objects::new(objects::client(&environment, patience), bucket, patience);
    let (log, clock) = (Log::new(Market::new(meter.attach(&client), table)), Arc::new(SystemClock::new()));
    if work == Work::Compaction {
        let compaction = Compaction::<V::Record>::new(log, objects, clock);
        compaction.with_limits(RebuildLimits::at_once()).run().await.map_err(text)?;
        return Ok(measurement.finish());
    }
    let replica = Replica::<V>::new(log, objects, clock);
    // A load that takes longer than an init phase allows continues in the next read.
    let _ = replica.warm_up().await;
    replica.read(|_| ()).await.map_err(|error| format!("{error:?}"))?;
    Ok(measurement.finish())
}
