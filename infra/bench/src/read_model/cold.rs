//! Cold loads: a process that has just started and does nothing but build one replica, as a function does
//! in its init phase; or the compaction that packs the base for it, as its function does.

use std::sync::Arc;

use base::Compaction;
use clap::ValueEnum;
use market::{Log, Market};
use platform::aws::{Environment, Patience, required};
use platform::resources::Table;
use replica::{Catalog, Listings, Replica, View};
use serde::Serialize;
use types::clock::SystemClock;

use super::load::{Load, Loading};
use crate::aws_side::AwsSide;
use crate::child::itself;
use crate::meter::Meter;
use crate::output::text;

/// What the subcommand is called.
const SUBCOMMAND: &str = "cold-load";

/// Which replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stream {
    Catalog,
    Listings,
}

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// The replica is built from the packed base.
    Base,
    /// The replica is built from the entities, where there is no base. With a bulk job's patience: the embedded
    /// DynamoDB may take longer for a page than the second that a function waits, sixteen being asked for at once.
    Entities,
    /// The base is packed from the entities.
    Compaction,
}

impl Stream {
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

/// The best of so many tries by CPU time, each in a process of its own.
pub(crate) async fn best(aws: &AwsSide, stream: Stream, work: Work, tries: usize) -> Result<Load, String> {
    let mut best = once(aws, stream, work).await?;
    for _ in 1..tries {
        let load = once(aws, stream, work).await?;
        if load.cpu_ms < best.cpu_ms {
            best = load;
        }
    }
    Ok(best)
}

async fn once(aws: &AwsSide, stream: Stream, work: Work) -> Result<Load, String> {
    let mut command = itself(SUBCOMMAND)?;
    command.args([stream.as_str(), work.as_str()]).env_clear().envs(aws.variables.iter());
    let output = command.output().await.map_err(text)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cold load: {error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Is the process that does it.
pub(crate) async fn run(stream: Stream, work: Work) -> Result<(), String> {
    let load = match stream {
        Stream::Catalog => load::<Catalog>(work).await?,
        Stream::Listings => load::<Listings>(work).await?,
    };
    println!("{}", serde_json::to_string(&load).map_err(text)?);
    Ok(())
}

async fn load<V: View>(work: Work) -> Result<Load, String> {
    let lookup = |name: &str| std::env::var(name).ok();
    let meter = Meter::default();
    let loading = Loading::begin(&meter);
    let patience = if work == Work::Base { Patience::Request } else { Patience::Bulk };
    let client = Environment::read(&lookup).map_err(text)?.dynamodb(patience);
    let [table] = required(&lookup, [Table::Market.variable()]).map_err(text)?;
    let (log, clock) = (Log::new(Market::new(meter.attach(&client), table)), Arc::new(SystemClock::new()));
    if work == Work::Compaction {
        Compaction::<V::Record>::new(log, clock).run().await.map_err(text)?;
        return Ok(loading.end());
    }
    let replica = Replica::<V>::new(log, clock);
    // A load that takes longer than an init phase may goes on.
    let _ = replica.warm_up().await;
    replica.read(|_| ()).await.map_err(|error| format!("{error:?}"))?;
    Ok(loading.end())
}
