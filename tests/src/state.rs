//! What a stack holds in its tables and answers over HTTP, to compare stacks with different histories.
//!
//! Compactions that a test runs itself, and what their bases say.
//!
//! Random histories that are played against the real code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use accounts::MAX_RECENT_INSERTS;
use aws_sdk_dynamodb::types::AttributeValue;
use common::aws::{Environment, Patience};
use common::clock::Clock;
use common::ids::UserId;
use common::paging::Sort;
use common::records::{PublicItem, PublicListing};
use common::resources::{Resources, Table};
use common::scope::Scope;
use common::store::Row;
use common::timestamp::Timestamp;
use feed::Stores;
use local::environment::{ACCOUNT_ID, REGION, Variables};
use local::seed::StackAdmin;
use market::{Change, ENTITY_PARTITIONS, Log, Manifest, Market, Record};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, TestRunner};
use replica::base::{Columnar, Columns, Compaction, Load};
use replica::objects::Objects;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::Client;
use crate::stack::Stack;
use crate::tables::{scan, set_limit};

/// The items that depend on the order in which changes came, by the start of their partition key.
const HISTORY_PREFIXES: [&str; 4] = ["head#", "log#", "base#", "rebuild#"];
const HISTORY_ATTRIBUTES: [&str; 3] = ["ttl", "ordinal", "recent"];

type StoredRow = BTreeMap<String, Value>;

/// Returns every record of the market and accounts tables by table and key, tombstones and versions included. Leaves
/// out what depends on the order in which changes came.
pub async fn tables(stack: &Stack) -> BTreeMap<String, StoredRow> {
    let mut found = BTreeMap::new();
    for table in [Table::Market, Table::Accounts] {
        for mut item in rows(stack, table).await {
            if !HISTORY_PREFIXES.iter().any(|history| text(&item, "pk").starts_with(history)) {
                item.retain(|name, _| !HISTORY_ATTRIBUTES.contains(&name.as_str()));
                found.insert(format!("{table:?} {} {}", text(&item, "pk"), text(&item, "sk")), item);
            }
        }
    }
    found
}

/// Asserts that both are equal. If they are not, shows only what differs.
pub fn assert_same<V: PartialEq + Debug>(found: &BTreeMap<String, V>, expected: &BTreeMap<String, V>, what: &str) {
    let keys: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differing = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
    let differing: Vec<_> = differing.map(|key| (key, found.get(key), expected.get(key))).collect();
    assert!(differing.is_empty(), "{what}: found, expected: {differing:#?}");
}

/// Asserts that each user's orders are numbered without a gap, that the summary names the latest of them, and that the
/// hours count them all.
pub async fn assert_orders_are_dense(stack: &Stack) {
    let (mut orders, mut summaries) = (BTreeMap::<String, Vec<(u64, String)>>::new(), BTreeMap::new());
    let (mut hours, mut counted_hours) = (BTreeMap::new(), BTreeMap::<_, BTreeMap<String, u64>>::new());
    for item in rows(stack, Table::Accounts).await {
        if let Some(user) = text(&item, "pk").strip_prefix("hours#") {
            let counts = item.iter().filter(|(name, _)| !["pk", "sk"].contains(&name.as_str()));
            let counts = counts.map(|(name, count)| (name.clone(), count.as_str().unwrap().parse().unwrap()));
            hours.insert((user.to_owned(), text(&item, "sk").to_owned()), counts.collect::<BTreeMap<String, u64>>());
        } else if let Some(user) = text(&item, "pk").strip_prefix("orders#") {
            let ordinal = item["ordinal"].as_str().unwrap().parse().unwrap();
            let position = text(&item, "sk");
            let counts = counted_hours.entry((user.to_owned(), position[..7].to_owned())).or_default();
            for name in ["orders".to_owned(), format!("h{}{}", &position[8..10], &position[11..13])] {
                *counts.entry(name).or_default() += 1;
            }
            orders.entry(user.to_owned()).or_default().push((ordinal, position.to_owned()));
        } else if let Some(user) = text(&item, "pk").strip_prefix("summary#") {
            summaries.insert(user.to_owned(), (item["total"].clone(), item["recent"].clone()));
        }
    }
    let counted = orders.into_iter().map(|(user, mut orders)| {
        orders.sort();
        let ordinals: Vec<u64> = orders.iter().map(|(ordinal, _)| *ordinal).collect();
        assert_eq!(ordinals, (1..=orders.len() as u64).collect::<Vec<_>>(), "orders of {user}");
        let recent: Vec<_> =
            orders[orders.len().saturating_sub(MAX_RECENT_INSERTS)..].iter().map(|(_, place)| place).collect();
        (user, (json!(orders.len().to_string()), json!(recent)))
    });
    assert_eq!(counted.collect::<BTreeMap<_, _>>(), summaries);
    assert_eq!(counted_hours, hours);
}

/// Asserts that the log has no gap, and that replaying it from the beginning gives what the entities say.
pub async fn assert_the_log_tells_all(stack: &Stack) {
    assert_the_stream_tells_all::<PublicItem>(stack).await;
    assert_the_stream_tells_all::<PublicListing>(stack).await;
}

async fn assert_the_stream_tells_all<R: Record + PartialEq + Debug>(stack: &Stack) {
    let log = stack.log::<R>();
    let (mut seq, mut replayed) = (0, BTreeMap::new());
    loop {
        let (batches, more) = log.since(seq).await.unwrap();
        for (number, changes) in batches {
            assert_eq!(number, seq + 1, "a gap in the log of {}", R::STREAM);
            seq = number;
            for change in changes {
                match change {
                    Change::Put(record) => replayed.insert(record.id().to_string(), record),
                    Change::Remove(id) => replayed.remove(&id.to_string()),
                };
            }
        }
        if !more {
            break;
        }
    }
    assert_eq!(log.head().await.unwrap(), seq);
    let entities = rows(stack, Table::Market).await.into_iter().filter_map(|item| {
        let is_live = text(&item, "pk").starts_with(&format!("entity#{}#", R::STREAM)) && item.contains_key("data");
        is_live.then(|| (text(&item, "sk").to_owned(), R::from_data(text(&item, "data")).unwrap()))
    });
    assert_eq!(replayed, entities.collect::<BTreeMap<_, _>>());
}

/// Returns what the API answers at this time: all pages of the catalog and of listings in each order, every item,
/// these variants' prices, the marketplaces, and these users' orders and balances.
pub async fn answers(stack: &Stack, now: Timestamp, users: &[UserId], variants: &[Uuid]) -> BTreeMap<String, Value> {
    let running = stack.instance().await;
    running.clock.set_wall(now);
    let (client, mut found) = (&running.client, BTreeMap::new());
    let key = busy_key(stack, Uuid::nil().into()).await;
    let catalog = pages(client, &key, "/v1/public/catalog?").await;
    let items = catalog.iter().flat_map(|page| page["items"].as_array().unwrap());
    let items = items.map(|item| format!("/v1/public/items/{}", item["id"].as_str().unwrap()));
    let prices = variants.iter().map(|variant| format!("/v1/public/prices/{variant}"));
    for path in items.chain(prices).chain(["/v1/public/marketplaces".to_owned()]) {
        let answer = client.get(&key, &path).await.json();
        found.insert(path, answer);
    }
    found.insert("catalog".to_owned(), json!(catalog));
    for sort in Sort::ALL {
        let listings = pages(client, &key, &format!("/v1/public/listings?sort={sort}&")).await;
        found.insert(sort.to_string(), json!(listings));
    }
    for user in users {
        let key = busy_key(stack, *user).await;
        found.insert(format!("orders of {user}"), json!(pages(client, &key, "/v1/public/orders?").await));
        found.insert(format!("balance of {user}"), client.get(&key, "/v1/public/wallet/balance").await.json());
    }
    found
}

/// Returns every page up to the first empty one, which is included.
async fn pages(client: &Client, key: &str, path: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let reply = client.get(key, &format!("{path}page={}&page_size=100", pages.len() + 1)).await;
        assert_eq!(reply.status, 200, "{:?}", reply.json());
        let is_empty = reply.ids().is_empty();
        pages.push(reply.json());
        if is_empty {
            return pages;
        }
    }
}

async fn busy_key(stack: &Stack, user: UserId) -> String {
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    set_limit(stack, &key, 1_000_000).await;
    key
}

async fn rows(stack: &Stack, table: Table) -> Vec<StoredRow> {
    let plain_row = |row: Row| row.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
    scan(stack, table).await.into_iter().map(plain_row).collect()
}

fn text<'i>(item: &'i StoredRow, name: &str) -> &'i str {
    item[name].as_str().unwrap()
}

fn plain(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => json!(text),
        AttributeValue::B(bytes) => json!(bytes.as_ref()),
        AttributeValue::Bool(bool) => json!(bool),
        AttributeValue::L(values) => values.iter().map(plain).collect(),
        AttributeValue::M(values) => values.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => panic!("unexpected attribute {other:?}"),
    }
}

impl Stack {
    /// Returns a stream of the market table.
    pub fn log<R: Record>(&self) -> Log<R> {
        Log::new(self.admin.stores().market)
    }

    /// Returns the manifest of a stream's base.
    pub async fn manifest<R: Record>(&self) -> Manifest {
        self.log::<R>().standing().await.unwrap().manifest.unwrap().unwrap()
    }

    /// Returns the tables as they are reached at this endpoint.
    pub fn stores_at(&self, endpoint: &str) -> Stores {
        StackAdmin::new(&Variables::new(endpoint), self.clock.clone()).unwrap().stores()
    }
}

/// Returns the compaction of a stream at an endpoint. It has the short time-outs of a request, so a failure comes
/// soon.
pub fn compaction<R: Columnar>(endpoint: &str, clock: Arc<dyn Clock>) -> Compaction<R> {
    let variables = Variables::new(endpoint);
    compaction_in(&Environment::read(&|name| variables.get(name)).unwrap(), clock)
}

/// Returns such a compaction that reaches AWS through this environment.
pub(crate) fn compaction_in<R: Columnar>(environment: &Environment, clock: Arc<dyn Clock>) -> Compaction<R> {
    let market = Market::new(environment.dynamodb(Patience::Request), "marketplace-market".to_owned());
    Compaction::new(Log::new(market), bucket_in(environment), clock)
}

/// Returns the bucket of bases in the default stack at an endpoint.
pub fn base_bucket(endpoint: &str) -> Objects {
    let variables = Variables::new(endpoint);
    bucket_in(&Environment::read(&|name| variables.get(name)).unwrap())
}

/// Asserts that the base with its deltas, and the log behind them, say what the entities say. Returns the records as they
/// are read.
pub async fn assert_base_is_exact<R: Columnar>(log: &Log<R>, bucket: Objects, clock: Arc<dyn Clock>) -> Vec<R> {
    let read = read_base(log, bucket, clock).await;
    let json = |record: &R| serde_json::to_value(record).unwrap();
    let by_id: BTreeMap<String, _> = read.iter().map(|record| (record.id().to_string(), json(record))).collect();
    let mut entities = BTreeMap::new();
    for partition in 0..ENTITY_PARTITIONS {
        let visit = |record: R| drop(entities.insert(record.id().to_string(), json(&record)));
        log.scan(partition, visit).await.unwrap();
    }
    assert_eq!(by_id, entities);
    read
}

/// Returns the records that a start reads from the base with its deltas, and the log behind them.
pub(crate) async fn read_base<R: Columnar>(log: &Log<R>, bucket: Objects, clock: Arc<dyn Clock>) -> Vec<R> {
    let snapshot = Load::new(log.clone(), bucket, clock).step().await.unwrap();
    assert!(snapshot.is_from_base());
    let read: Vec<R> = snapshot.folded().iter().flat_map(|columns| columns.records().unwrap()).collect();
    let ids: BTreeSet<String> = read.iter().map(|record| record.id().to_string()).collect();
    assert_eq!(ids.len(), read.len(), "a record is there twice");
    read
}

pub(crate) fn bucket_in(environment: &Environment) -> Objects {
    let bucket = Resources::new(Resources::DEFAULT_STACK).base_bucket(ACCOUNT_ID, REGION);
    Objects::new(replica::objects::client(environment, Patience::Request), bucket, Patience::Request)
}

/// Returns how many histories a model plays that plays this many in every run of the tests. `MODEL_HISTORIES=100` plays
/// a hundred times as many.
pub fn histories(of_every_run: u32) -> u32 {
    let factor = std::env::var("MODEL_HISTORIES").map_or(1, |factor| factor.parse().unwrap());
    of_every_run * factor
}

/// Plays [`histories`] of random steps, one after the other. The first that panics is shrunk and shown.
pub fn play_histories<S: Strategy>(cases: u32, steps: &S, play: impl AsyncFn(S::Value)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = Config { cases: histories(cases), failure_persistence: None, ..Config::default() };
    let played = TestRunner::new(config).run(steps, |history| {
        runtime.block_on(play(history));
        Ok(())
    });
    played.unwrap();
}
