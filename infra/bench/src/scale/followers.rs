//! How many instances one log serves, on simulated time. All of them read the same partition.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use local::aws::limits::{Access, Limits};
use local::simulation::SimulatedInstance;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::figures::Figures;
use super::fill::{apply_listings, write_base};
use super::simulation::{Simulation, ask};
use crate::market::GeneratedMarket;
use crate::output::{number, table, text};
use crate::read_model::cold::ReplicaStream;

const CHANGES_PER_SECOND: [u64; 2] = [100, 1_000];
const INSTANCES: [usize; 5] = [25, 50, 100, 200, 400];
const SECONDS: u32 = 10;
/// The listings that each instance has at first.
const SIZE: u64 = 1_000;
/// How often per second changes are written.
const WRITES_PER_SECOND: u32 = 10;
/// How the partition keys of the log begin.
const LOG: &str = "log#";

/// What instances that follow one log have done.
#[derive(Debug, Serialize)]
struct Following {
    changes_per_second: u64,
    instances: usize,
    log_units_per_second: f64,
    /// Reads of the log that were refused.
    refused: usize,
    unavailable: u64,
}

/// Measures each rate of changes with more and more instances.
pub(super) async fn measure() -> Result<Figures, String> {
    let mut measured = Vec::new();
    for changes_per_second in CHANGES_PER_SECOND {
        for instances in INSTANCES {
            measured.push(follow(changes_per_second, instances).await?);
        }
    }
    let header = ["changes/s", "instances", "read units/s of the log", "refused", "503"];
    let rows = measured.iter().map(|following| {
        [
            following.changes_per_second.to_string(),
            following.instances.to_string(),
            number(following.log_units_per_second),
            following.refused.to_string(),
            following.unavailable.to_string(),
        ]
    });
    let table = table(header, rows);
    Figures::new(&measured, format!("{SECONDS} s with one request a second to each instance.\n\n{table}"))
}

async fn follow(changes_per_second: u64, instances: usize) -> Result<Following, String> {
    let simulation = Simulation::start().await?;
    let market = GeneratedMarket::new(SIZE, simulation.now());
    write_base(&simulation.environment()?, &market, ReplicaStream::Listings).await?;
    let keys = simulation.keys(instances).await?;
    let followers = try_join_all(keys.iter().map(|_| init(&simulation))).await?;
    let limiter = simulation.aws.limits();
    limiter.set(Limits::aws());
    let asking = keys.iter().zip(&followers).zip(0..).map(|((key, follower), place)| {
        let first = Instant::now() + Duration::from_secs(1) * place / instances as u32;
        ask_each_second(follower, key, first)
    });
    let (written, asked) = tokio::join!(write(&simulation, &market, changes_per_second), join_all(asking));
    written?;
    let report = limiter.take_report();
    let of_log = report.consumed.iter().filter(|((_, partition), _)| is_log(partition.as_deref()));
    let units: f64 = of_log.map(|(_, units)| units.read).sum();
    let refused = report.refused.iter().filter(|it| it.access == Access::Read && is_log(it.partition.as_deref()));
    Ok(Following {
        changes_per_second,
        instances,
        log_units_per_second: units / f64::from(SECONDS),
        refused: refused.count(),
        unavailable: asked.into_iter().sum::<Result<u64, String>>()?,
    })
}

async fn init(simulation: &Simulation) -> Result<SimulatedInstance, String> {
    let mut instance = simulation.cold_listings()?;
    instance.init().await.map_err(text)?;
    Ok(instance)
}

/// Returns how many requests were 503.
async fn ask_each_second(instance: &SimulatedInstance, key: &str, first: Instant) -> Result<u64, String> {
    let mut unavailable = 0;
    for second in 0..SECONDS {
        sleep_until(first + Duration::from_secs(1) * second).await;
        unavailable += u64::from(ask(instance, key).await?.is_none());
    }
    Ok(unavailable)
}

/// Writes changes at a constant rate.
async fn write(simulation: &Simulation, market: &GeneratedMarket, per_second: u64) -> Result<(), String> {
    let (began, each) = (Instant::now(), per_second / u64::from(WRITES_PER_SECOND));
    for turn in 0..SECONDS * WRITES_PER_SECOND {
        sleep_until(began + Duration::from_secs(1) * turn / WRITES_PER_SECOND).await;
        let first = SIZE + u64::from(turn) * each;
        apply_listings(simulation.admin.stores(), market, first..first + each, simulation.now()).await?;
    }
    Ok(())
}

fn is_log(partition: Option<&str>) -> bool {
    partition.is_some_and(|partition| partition.starts_with(LOG))
}
