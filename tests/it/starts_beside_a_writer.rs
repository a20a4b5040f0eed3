//! Instances that start while a writer is at work, on simulated time. Reads see half of the writer's transactions where
//! DynamoDB allows it, but an answer never shows half of one.

use std::cell::Cell;
use std::time::Duration;

use base::{Compacted, RebuildLimits};
use local::aws::limits::{Latency, Limits};
use local::simulation::SimulatedInstance;
use tests::{Simulation, get_from, listing, sold_listing, uuid};
use tokio::time::sleep;
use types::records::PublicListing;
use types::scope::Scope;

/// How many histories are played. Each has other latencies.
const SEEDS: u64 = 4;
const WRITES: u32 = 48;
/// Listings by their number. No page holds more than this one can.
const ALL: &str = "/v1/public/listings?sort=price_asc&page_size=100";

/// A history that is being played.
struct History {
    simulation: Simulation,
    key: String,
    /// How many writes have begun, and how many of them were acknowledged.
    begun: Cell<u32>,
    done: Cell<u32>,
}

/// Returns the ids of the listings that are active after this many writes.
fn active(writes: u32) -> Vec<String> {
    (writes / 3 + 1..=writes).map(|number| uuid(u128::from(number)).to_string()).collect()
}

/// Returns limits that admit everything, with latencies that differ much, and eventually consistent Queries that lag.
fn limits(seed: u64) -> Limits {
    let latency = Latency { median: Duration::from_millis(4), p99: Duration::from_millis(60) };
    let transaction_latency = Latency { median: Duration::from_millis(15), p99: Duration::from_millis(90) };
    Limits { latency, transaction_latency, lag: Duration::from_millis(300), seed, ..Limits::unlimited() }
}

impl History {
    async fn new(seed: u64) -> Self {
        let simulation = Simulation::new().await;
        let key = simulation.key(&[Scope::ListingsRead]).await;
        simulation.aws.limits().set(limits(seed));
        Self { simulation, key, begun: Cell::default(), done: Cell::default() }
    }

    /// Writes the listings, one after the other. Each third transaction also ends the oldest one.
    async fn write(&self) {
        for number in 1..=WRITES {
            let price = format!("{}.{:02}", number / 100, number % 100);
            let mut batch = vec![listing(number, &price, "2026-11-20T10:00:00Z", 1)];
            if number.is_multiple_of(3) {
                batch.push(sold_listing(number / 3, 2));
            }
            self.begun.set(number);
            self.simulation.feed(&batch).await;
            self.done.set(number);
        }
    }

    /// Starts an instance after a while. Its first answer must show one state that was current meanwhile.
    async fn start_after(&self, pause: Duration) -> SimulatedInstance {
        sleep(pause).await;
        let done = self.done.get();
        let mut instance = self.simulation.cold("listings", listings::api);
        instance.init().await.unwrap();
        let shown = self.shown_by(&instance).await;
        let begun = self.begun.get();
        let is_state = (done..=begun).any(|writes| active(writes) == shown);
        assert!(is_state, "{shown:?} is the state of none of the writes {done} to {begun}");
        instance
    }

    async fn shown_by(&self, instance: &SimulatedInstance) -> Vec<String> {
        let reply = get_from(instance, &self.key, ALL).await;
        assert_eq!(reply.status, 200, "{:?}", reply.json());
        reply.ids()
    }

    /// Writes the first base while the writer is at work.
    async fn compact_after(&self, pause: Duration) {
        sleep(pause).await;
        self.simulation.compaction::<PublicListing>().run().await.unwrap();
    }

    /// Writes the first base while the writer is at work, in as many runs and from as many pieces as it can have.
    async fn compact_in_slices(&self) {
        let limits = RebuildLimits { buffer_bytes: 1, slice: Duration::ZERO, ..RebuildLimits::default() };
        let compaction = self.simulation.compaction::<PublicListing>().with_limits(limits);
        let mut outcome = compaction.run().await.unwrap();
        while let Compacted::Reading { .. } = outcome {
            outcome = compaction.run().await.unwrap();
        }
        assert!(matches!(outcome, Compacted::Written { from_entities: true, .. }), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_starts_beside_a_writer_shows_no_half_of_a_transaction() {
    for seed in 0..SEEDS {
        let history = History::new(seed).await;
        let [early, middle, late, last] = [20, 150, 400, 700].map(Duration::from_millis);
        let (one, two, three, four, (), ()) = tokio::join!(
            history.start_after(early),
            history.start_after(middle),
            history.start_after(late),
            history.start_after(last),
            history.write(),
            history.compact_after(middle),
        );
        sleep(Duration::from_secs(2)).await;
        for instance in [one, two, three, four] {
            assert_eq!(history.shown_by(&instance).await, active(WRITES), "with the seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_base_that_was_made_in_slices_beside_a_writer_is_exact() {
    for seed in 0..SEEDS {
        let history = History::new(seed).await;
        tokio::join!(history.write(), history.compact_in_slices());
        let instance = history.start_after(Duration::ZERO).await;
        assert_eq!(history.shown_by(&instance).await, active(WRITES), "with the seed {seed}");
    }
}
