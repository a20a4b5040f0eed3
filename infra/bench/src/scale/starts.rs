//! Cold starts of `listings` on simulated time: one alone, and many at once.

use std::time::Duration;

use futures_util::future::try_join_all;
use local::aws::limits::Limits;
use tokio::time::sleep;

use super::figures::{Figures, Requests};
use super::fill::{apply_listings, write_base};
use super::simulation::{Simulation, ask};
use crate::market::GeneratedMarket;
use crate::output::text;
use crate::read_model::cold::ReplicaStream;

/// The changes behind the base. A run of `compact` leaves at most as many.
const TAIL_CHANGES: u64 = 3_000;
/// The largest market for many starts at once. All their loads are in memory at the same time.
const MAX_SIZE_FOR_CROWDS: u64 = 1_000_000;
/// A start that takes longer is an error.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause of a client after a 503.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Measures one start, and then many.
pub(super) async fn measure(size: u64, crowd: usize) -> Result<Figures, String> {
    let simulation = Simulation::start().await?;
    let market = GeneratedMarket::new(size, simulation.now());
    write_base(&simulation.environment()?, &market, ReplicaStream::Listings).await?;
    apply_listings(simulation.admin.stores(), &market, size..size + TAIL_CHANGES, simulation.now()).await?;
    let keys = simulation.keys(crowd.max(1)).await?;
    let (one, total) = (keys.get(..1).unwrap_or_default(), size + TAIL_CHANGES);
    let mut measured = vec![start_all(&simulation, "one start", one, total).await?];
    if size <= MAX_SIZE_FOR_CROWDS {
        measured.push(start_all(&simulation, &format!("{crowd} starts at once"), &keys, total).await?);
    }
    let table = Requests::table(&measured);
    let text = format!(
        "{size} listings and {TAIL_CHANGES} changes behind the base, under AWS's limits. Only the limits and latencies \
         of the stores take time. The base was written below the API. Crowds are not measured above \
         {MAX_SIZE_FOR_CROWDS} listings, for want of memory.\n\n{table}"
    );
    Figures::new(&measured, text)
}

/// Starts an instance for each key, all at the same time.
async fn start_all(simulation: &Simulation, name: &str, keys: &[String], total: u64) -> Result<Requests, String> {
    let limiter = simulation.aws.limits();
    limiter.set(Limits::aws());
    let started = try_join_all(keys.iter().map(|key| start(simulation, key, total))).await?;
    let report = limiter.take_report();
    limiter.lift();
    let unavailable = started.iter().map(|(_, unavailable)| unavailable).sum();
    let taken = started.iter().map(|(taken, _)| *taken).collect();
    Ok(Requests::new(name.to_owned(), keys.len(), taken, unavailable, &report))
}

/// Starts an instance and asks it until it answers, which must be right. Returns how long that took, and how many
/// requests were 503 before. The instance ends then, because all of them together would need much memory.
async fn start(simulation: &Simulation, key: &str, total: u64) -> Result<(Duration, u64), String> {
    let since = simulation.elapsed();
    let mut instance = simulation.cold_listings()?;
    instance.init().await.map_err(text)?;
    let mut unavailable = 0;
    while simulation.since(since) < PATIENCE {
        match ask(&instance, key).await? {
            Some(found) if found == total => return Ok((simulation.since(since), unavailable)),
            Some(found) => return Err(format!("a start answered with {found} of {total} listings")),
            None => {
                unavailable += 1;
                sleep(RETRY_PAUSE).await;
            }
        }
    }
    Err(format!("a start was 503 {unavailable} times"))
}
