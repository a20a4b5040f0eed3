//! A deployment on simulated time: new instances start at once, while clients go on asking.

use std::time::Duration;

use futures_util::future::try_join_all;
use local::aws::limits::Limits;
use tokio::time::{Instant, sleep_until};

use super::figures::{Figures, Requests};
use super::fill::write_base;
use super::simulation::{Simulation, ask};
use crate::market::GeneratedMarket;
use crate::output::text;
use crate::read_model::cold::ReplicaStream;

const INSTANCES: usize = 50;
/// The interval between the requests to one instance, so that all of them together get a thousand per second.
const INTERVAL: Duration = Duration::from_millis(50);
/// The requests to each instance, in ten seconds.
const REQUESTS: u32 = 200;
/// The largest market. All replicas are in memory at the same time.
const MAX_SIZE: u64 = 200_000;

/// Measures the requests from the moment at which the new instances start.
pub(super) async fn measure(size: u64) -> Result<Figures, String> {
    let size = size.min(MAX_SIZE);
    let simulation = Simulation::start().await?;
    write_base(&simulation.environment()?, &GeneratedMarket::new(size, simulation.now()), ReplicaStream::Listings)
        .await?;
    let keys = simulation.keys(INSTANCES).await?;
    let limiter = simulation.aws.limits();
    limiter.set(Limits::aws());
    let served = try_join_all(keys.iter().zip(0..).map(|(key, place)| serve(&simulation, key, place, size))).await?;
    let report = limiter.take_report();
    let unavailable = served.iter().map(|(_, unavailable)| unavailable).sum();
    let taken = served.into_iter().flat_map(|(taken, _)| taken).collect();
    let measured = [Requests::new("1,000 requests/s".to_owned(), INSTANCES, taken, unavailable, &report)];
    let table = Requests::table(&measured);
    let text = format!(
        "{INSTANCES} instances with {size} listings (at most {MAX_SIZE}, for want of memory) start at once, and get \
         1,000 requests a second from then on. Requests wait until their instance has started, and for each \
         other.\n\n{table}"
    );
    Figures::new(&measured, text)
}

/// Starts an instance and answers its requests one at a time. Returns how long each took from when it was due, and how
/// many were 503.
async fn serve(simulation: &Simulation, key: &str, place: u32, total: u64) -> Result<(Vec<Duration>, u64), String> {
    let first = Instant::now() + INTERVAL * place / INSTANCES as u32;
    let mut instance = simulation.cold_listings()?;
    instance.init().await.map_err(text)?;
    let (mut taken, mut unavailable) = (Vec::with_capacity(REQUESTS as usize), 0);
    for request in 0..REQUESTS {
        let due = first + INTERVAL * request;
        sleep_until(due).await;
        match ask(&instance, key).await? {
            Some(found) if found == total => taken.push(due.elapsed()),
            Some(found) => return Err(format!("an instance answered with {found} of {total} listings")),
            None => unavailable += 1,
        }
    }
    Ok((taken, unavailable))
}
