//! Readers beside a transaction that takes three seconds. A Query may show any of its rows long before the others, and
//! each reader still ends with all that was written.

use std::collections::BTreeMap;
use std::time::Duration;

use common::records::PublicListing;
use common::scope::Scope;
use local::aws::limits::{Latency, Limits};
use local::simulation::SimulatedInstance;
use replica::base::{Compacted, RebuildLimits};
use serde_json::Value;
use tests::{Simulation, get_from, listing, shown, sold_listing, uuid};
use tokio::time::sleep;

/// A transaction is applied after half of this time. Its rows show one by one in the other half.
const SLOW: Duration = Duration::from_secs(3);
/// How many histories are played. Each finds a lost entry in about one of three.
const SEEDS: u64 = 12;

fn slow(seed: u64) -> Limits {
    let latency = Latency::always(Duration::from_millis(5));
    Limits { transaction_latency: Latency::always(SLOW), latency, seed, ..Limits::unlimited() }
}

fn added(numbers: std::ops::Range<u32>, version: u64) -> Vec<Value> {
    numbers.map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", version)).collect()
}

/// Returns what is there after listings 0 to 7 were added, and then in one transaction 8 and 9 were added, and 0 to 3
/// sold.
fn expected() -> BTreeMap<String, String> {
    (4..10).map(|number| (uuid(number).to_string(), "1.00".to_owned())).collect()
}

fn last_transaction() -> Vec<Value> {
    (0..4).map(|number| sold_listing(number, 2)).chain(added(8..10, 1)).collect()
}

/// How much of the last transaction shows when a reader begins.
const BEGINS: [Duration; 3] = [Duration::from_millis(1_600), Duration::from_secs(2), Duration::from_millis(2_600)];

#[tokio::test(start_paused = true)]
async fn a_start_keeps_every_change_of_a_transaction_that_shows_row_by_row() {
    for (seed, has_base) in (0..SEEDS).flat_map(|seed| [(seed, false), (seed, true)]) {
        let simulation = Simulation::new().await;
        let key = simulation.key(&[Scope::ListingsRead]).await;
        simulation.feed(&added(0..8, 1)).await;
        if has_base {
            simulation.compaction::<PublicListing>().run().await.unwrap();
        }
        simulation.aws.limits().set(slow(seed));
        let instances = BEGINS.map(|_| simulation.cold("listings", listings::api));
        let [first, second, third] = &instances;
        let start = async |instance: &SimulatedInstance, begins| {
            sleep(begins).await;
            get_from(instance, &key, "/v1/public/listings").await.status
        };
        let messages = last_transaction();
        let ((), ..) = tokio::join!(
            simulation.feed(&messages),
            start(first, BEGINS[0]),
            start(second, BEGINS[1]),
            start(third, BEGINS[2])
        );
        simulation.aws.limits().set(Limits::unlimited());
        sleep(SLOW).await;
        for instance in &instances {
            assert_eq!(shown(instance, &key).await, Some(expected()), "seed {seed}, base {has_base}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_base_keeps_every_change_of_a_transaction_that_shows_row_by_row() {
    for (seed, begins) in (0..SEEDS).flat_map(|seed| BEGINS.map(|begins| (seed, begins))) {
        let simulation = Simulation::new().await;
        simulation.feed(&added(0..8, 1)).await;
        simulation.aws.limits().set(slow(seed));
        let compaction = simulation.compaction::<PublicListing>().with_limits(RebuildLimits::at_once());
        let run = async {
            sleep(begins).await;
            compaction.run().await.unwrap()
        };
        let messages = last_transaction();
        let ((), outcome) = tokio::join!(simulation.feed(&messages), run);
        assert!(matches!(outcome, Compacted::Written { .. }), "{outcome:?}");
        simulation.aws.limits().set(Limits::unlimited());
        simulation.assert_base_is_exact::<PublicListing>().await;
    }
}
