//! Streams whose last transaction was cut in two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use common::clock::ManualClock;
use common::records::PublicListing;
use local::simulation::SimulatedInstance;
use marketctl::repair::Repair;
use replica::base::Compacted;
use serde_json::{Value, json};
use tests::{Fault, Proxy, Stack, base_bucket, compaction, get_from, listing, sold_listing};

use super::{changed, put_all_back, put_back, repair_market, rows};

pub(super) const TABLE: &str = "marketplace-market";
const AT: &str = "2026-11-20T10:00:00Z";
/// The rows of the transaction: the head, its entry, and three entities.
const ROWS: usize = 5;

/// Listings by their ids, each with its price.
pub(super) type Listings = BTreeMap<String, String>;

/// The function `listings`, which remembers what it has read.
pub(super) struct Reader {
    instance: SimulatedInstance,
    clock: Arc<ManualClock>,
}

impl Reader {
    pub(super) async fn start(stack: &Stack) -> Self {
        let (instance, clock) = stack.lone("listings", listings::api).await;
        Self { instance, clock }
    }

    /// Moves its clock so far that it reads the log again.
    pub(super) fn wait(&self) {
        self.clock.advance(Duration::from_secs(2));
    }
}

/// Returns what a function shows, or `None` if it answers with an error.
pub(super) async fn shown(stack: &Stack, reader: &Reader) -> Option<Listings> {
    let reply = get_from(&reader.instance, &stack.full_key().await, "/v1/public/listings?page_size=100").await;
    if reply.status == 503 {
        return None;
    }
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    let body = reply.json();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    let items = body["items"].as_array().unwrap().iter();
    let found: Listings = items.map(|item| (text(item, "id"), text(item, "price_usd"))).collect();
    assert_eq!(body["total"].as_u64(), Some(found.len() as u64));
    Some(found)
}

/// Returns the listings that the entities hold.
pub(super) async fn entities(stack: &Stack) -> Listings {
    let live = rows(stack, TABLE).await.into_iter().filter_map(|([pk, sk], row)| {
        let data = row.get("data").filter(|_| pk.starts_with("entity#listings#"))?.as_s().unwrap().clone();
        Some((sk, serde_json::from_str::<Value>(&data).unwrap()["price_usd"].as_str().unwrap().to_owned()))
    });
    live.collect()
}

/// Asserts that each listing is shown as it was before the transaction or after it.
pub(super) fn assert_right(shown: Option<&Listings>, before: &Listings, after: &Listings, what: &str) {
    let Some(shown) = shown else { return };
    let ids: BTreeSet<_> = shown.keys().chain(before.keys()).chain(after.keys()).collect();
    for id in ids {
        let found = shown.get(id);
        assert!(found == before.get(id) || found == after.get(id), "{what}: {id} is {found:?}");
    }
}

/// Cuts the last transaction so that the rows of this subset are old, and repairs the stream. The table holds three
/// listings and no base.
async fn cut_and_repair(stack: &Stack, subset: usize, has_base: bool) {
    let what = format!("rows {subset:05b} old, base: {has_base}");
    if has_base {
        let written = compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
        assert!(matches!(written, Compacted::Written { records: 3, .. }), "{written:?}");
    }
    let warm = Reader::start(stack).await;
    let before = shown(stack, &warm).await.unwrap();
    let old = rows(stack, TABLE).await;
    stack.feed(&[listing(1, "2.00", AT, 2), sold_listing(2, 2), listing(4, "1.00", AT, 1)]).await;
    let (after, new) = (entities(stack).await, rows(stack, TABLE).await);
    let written = changed(&old, &new);
    assert_eq!(written.len(), ROWS, "{written:?}");
    for (_, key) in written.iter().enumerate().filter(|(index, _)| (subset >> index) & 1 == 1) {
        put_back(stack, TABLE, &old, key).await;
    }

    warm.wait();
    assert_right(shown(stack, &warm).await.as_ref(), &before, &after, &what);
    assert_right(shown(stack, &Reader::start(stack).await).await.as_ref(), &before, &after, &what);
    let kept = entities(stack).await;
    let cut = rows(stack, TABLE).await;
    let mut look = Repair::new(stack.clock.clone(), true);
    look.market(&stack.admin.stores().market, &base_bucket(&stack.aws.endpoint_url)).await.unwrap();
    assert_eq!(rows(stack, TABLE).await, cut, "{what}");
    let done = repair_market(stack, stack.admin.stores()).await.unwrap();
    assert_eq!((done.count("listings").0, &done.counts), (kept.len() as u64, &look.done.counts), "{what}");

    warm.wait();
    assert_eq!(shown(stack, &warm).await.unwrap(), kept, "{what}, warm");
    assert_eq!(shown(stack, &Reader::start(stack).await).await.unwrap(), kept, "{what}, cold");
    stack.feed(&[listing(1, "3.00", AT, 3), listing(5, "1.00", AT, 1)]).await;
    let kept = entities(stack).await;
    warm.wait();
    assert_eq!(shown(stack, &warm).await.unwrap(), kept, "{what}, warm, after a write");
    assert_eq!(shown(stack, &Reader::start(stack).await).await.unwrap(), kept, "{what}, cold, after a write");
}

/// Cuts the same transaction in these ways. Each time the table is first made what it was before.
async fn cut_in_ways(subsets: impl Iterator<Item = usize>, has_base: bool) {
    let stack = Stack::new().await;
    stack.feed(&[1, 2, 3].map(|number| listing(number, "1.00", AT, 1))).await;
    let start = rows(&stack, TABLE).await;
    for subset in subsets {
        cut_and_repair(&stack, subset, has_base).await;
        put_all_back(&stack, TABLE, &start).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_in_line_again_whichever_rows_of_its_last_transaction_a_restore_has() {
    tokio::join!(cut_in_ways(0..1 << ROWS, true), cut_in_ways([0b00001, 0b00010, 0b10100].into_iter(), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_stays_on_the_air_until_its_new_base_is_there() {
    let stack = Stack::new().await;
    stack.feed(&[1, 2].map(|number| listing(number, "1.00", AT, 1))).await;
    compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
    let (warm, reads) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let assert_on_the_air = async || {
        warm.wait(2);
        let reply = warm.client.get(&key, "/v1/public/listings").await;
        assert_eq!((reply.status, &reply.json()["total"]), (200, &json!(2)));
    };
    assert_on_the_air().await;
    // An instance that needed the entities would answer 503.
    reads.set_fault(Fault::Invalid("entity#listings"));
    let writes = Proxy::start(&stack.aws.endpoint_url).await;
    let (market, bucket) = (stack.admin.stores().market, base_bucket(&writes.url));
    let mut repair = Repair::new(stack.clock.clone(), false);
    let asking = writes.while_held("PutObject", 1, async {
        assert_on_the_air().await;
        assert_on_the_air().await;
    });
    let (repaired, ()) = tokio::join!(repair.market(&market, &bucket), asking);
    repaired.unwrap();
    assert_on_the_air().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_remember_what_a_restore_undid_read_the_stream_again() {
    let stack = Stack::new().await;
    stack.feed(&[listing(1, "1.00", AT, 1)]).await;
    compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
    let old = rows(&stack, TABLE).await;
    for version in 2..5 {
        stack.feed(&[listing(1, "2.00", AT, version)]).await;
    }
    let warm = Reader::start(&stack).await;
    assert_eq!(shown(&stack, &warm).await.unwrap(), entities(&stack).await);
    for key in changed(&old, &rows(&stack, TABLE).await) {
        put_back(&stack, TABLE, &old, &key).await;
    }
    repair_market(&stack, stack.admin.stores()).await.unwrap();
    // Fewer changes than were undone, so the numbers of the old log would hide them.
    stack.feed(&[listing(2, "1.00", AT, 1)]).await;
    warm.wait();
    assert_eq!(shown(&stack, &warm).await.unwrap(), entities(&stack).await);
}
