//! `GET /v1/public/listings/changes`: whoever walks through the listings once, and then applies the changes, has the
//! market, whatever is written meanwhile and however much of a transaction a Query shows.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use common::store::Row;
use local::aws::limits::{Latency, Limits};
use proptest::prelude::*;
use serde_json::{Value, json};
use tests::{AwsCall, Client, HttpReply, Stack, dynamodb, listing, play_histories, set_limit, sold_listing, uuid};

const PATH: &str = "/v1/public/listings/changes";

/// Returns a key that may ask as often as it likes.
async fn busy_key(stack: &Stack) -> String {
    let key = stack.full_key().await;
    set_limit(stack, &key, 100_000).await;
    key
}

async fn changes(client: &Client, key: &str, after: u64) -> HttpReply {
    client.get(key, &format!("{PATH}?after={after}")).await
}

/// The listings by their ids.
type Market = BTreeMap<String, Value>;

/// A client's copy of the market.
struct Mirror<'a> {
    client: &'a Client,
    key: &'a str,
    listings: Market,
    position: u64,
}

impl<'a> Mirror<'a> {
    /// Walks through the listings.
    async fn walk(client: &'a Client, key: &'a str) -> Self {
        let (mut listings, mut position) = (Market::new(), u64::MAX);
        for page in 1.. {
            let reply = client.get(key, &format!("/v1/public/listings?page_size=3&page={page}")).await;
            position = position.min(reply.header("x-log-position").parse().unwrap());
            let found = reply.json()["items"].as_array().unwrap().clone();
            if found.is_empty() {
                break;
            }
            listings.extend(found.into_iter().map(|listing| (listing["id"].as_str().unwrap().to_owned(), listing)));
        }
        Self { client, key, listings, position }
    }

    /// Applies a page of changes. Returns whether there are more.
    async fn follow(&mut self) -> bool {
        let reply = changes(self.client, self.key, self.position).await;
        assert_eq!(reply.status, 200, "{:?}", reply.json());
        let page = reply.json();
        for change in page["changes"].as_array().unwrap() {
            let position = change["position"].as_u64().unwrap();
            assert!(position == self.position || position == self.position + 1, "{position} after {}", self.position);
            self.position = position;
            if let Some(id) = change["removed"].as_str() {
                self.listings.remove(id);
            } else {
                let listing = change["listing"].clone();
                self.listings.insert(listing["id"].as_str().unwrap().to_owned(), listing);
            }
        }
        assert_eq!(page["position"], self.position);
        assert_eq!(reply.header("x-log-position"), self.position.to_string());
        page["more"].as_bool().unwrap()
    }
}

/// Messages about some of twenty listings: which one, and its price in cents, or `None` if it is sold.
type Messages = Vec<(u32, Option<u32>)>;

/// What two writers write at the same time, round by round.
fn rounds() -> impl Strategy<Value = Vec<[Vec<Messages>; 2]>> {
    let message = (1_u32..=20, prop::option::weighted(0.7, 1_u32..1_000));
    let writer = || prop::collection::vec(prop::collection::vec(message.clone(), 1..6), 1..5);
    prop::collection::vec((writer(), writer()).prop_map(|(one, other)| [one, other]), 1..5)
}

/// Writes messages, each with a version that is newer than all before it.
async fn write(stack: &Stack, batches: &[Messages], first_version: u64) {
    let mut version = first_version;
    for batch in batches {
        let messages: Vec<Value> = batch
            .iter()
            .map(|&(number, cents)| {
                version += 2;
                cents.map_or_else(
                    || sold_listing(number, version),
                    |cents| {
                        listing(number, &format!("{}.{:02}", cents / 100, cents % 100), "2026-11-20T10:00:00Z", version)
                    },
                )
            })
            .collect();
        stack.feed_outcomes(&messages).await;
    }
}

/// Plays rounds on a store that is slow and shows halves of transactions.
async fn play(rounds: Vec<[Vec<Messages>; 2]>) {
    let latency = Latency { median: Duration::from_millis(1), p99: Duration::from_millis(10) };
    let transaction_latency = Latency { median: Duration::from_millis(5), p99: Duration::from_millis(30) };
    let stack = Stack::with_limits(Limits { latency, transaction_latency, ..Limits::unlimited() }).await;
    let running = stack.instance().await;
    let key = busy_key(&stack).await;
    let mut mirror = None;
    for (round, [one, other]) in (0_u64..).zip(rounds) {
        let following = async {
            if mirror.is_none() {
                mirror = Some(Mirror::walk(&running.client, &key).await);
            }
            let mirror = mirror.as_mut().unwrap();
            for _ in 0..5 {
                mirror.follow().await;
            }
        };
        let version = round * 1_000;
        tokio::join!(write(&stack, &one, version), write(&stack, &other, version + 1), following);
        let mirror = mirror.as_mut().unwrap();
        assert!(!mirror.follow().await, "one request shows all that was committed before it");
        running.wait(2);
        let now = Mirror::walk(&running.client, &key).await;
        assert_eq!((&mirror.listings, mirror.position), (&now.listings, now.position));
    }
}

#[test]
fn a_walk_and_the_changes_behind_it_are_the_market() {
    play_histories(24, &rounds(), play);
}

const POSITION: &str = "a position from X-Log-Position or from the answer before, such as 4711";

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_is_missing_malformed_or_beyond_the_log_is_named() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = busy_key(&stack).await;
    stack.feed(&[listing(1, "1.00", "2026-11-20T10:00:00Z", 1)]).await;
    let expected = "a position of this log, which ends at 1; if it was one, the log was begun anew, so walk again";
    let beyond = json!({"code": "out_of_range", "params": {"min": 0, "max": 1, "expected": expected}});
    for (query, problem) in [
        ("", json!({"code": "required", "params": {"expected": POSITION}})),
        ("?after=", json!({"code": "malformed", "params": {"expected": POSITION}})),
        ("?after=-1", json!({"code": "malformed", "params": {"expected": POSITION}})),
        ("?after=1.0", json!({"code": "malformed", "params": {"expected": POSITION}})),
        ("?after=2", beyond.clone()),
        ("?after=18446744073709551615", beyond.clone()),
        ("?after=18446744073709551616", beyond),
    ] {
        let reply = running.client.get(&key, &format!("{PATH}{query}")).await;
        let mut expected = problem;
        expected["field"] = json!("after");
        assert_eq!((reply.status, &reply.json()["error"]["fields"]), (400, &json!([expected])), "{query}");
    }
    let shown = json!({"changes": [], "position": 1, "more": false});
    assert_eq!(changes(&running.client, &key, 1).await.json(), shown);
}

/// Removes an entry of the log of listings, and returns it.
pub(crate) async fn remove_entry(stack: &Stack, seq: u64) -> Row {
    let key = [("pk", "log#listings#0".to_owned()), ("sk", format!("{seq:020}"))];
    let key = key.map(|(name, value)| (name.to_owned(), AttributeValue::S(value)));
    let delete = dynamodb(stack).delete_item().table_name("marketplace-market").set_key(Some(key.into()));
    delete.return_values(ReturnValue::AllOld).send().await.unwrap().attributes.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_before_a_gap_and_only_what_has_expired_is_410() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = busy_key(&stack).await;
    for number in 1..=4 {
        stack.feed(&[listing(number, "1.00", "2026-11-20T10:00:00Z", 1)]).await;
    }
    let page = async |after| {
        let page = changes(&running.client, &key, after).await.json();
        (page["changes"].as_array().unwrap().len(), page["position"].clone(), page["more"].clone())
    };
    assert_eq!(page(0).await, (4, json!(4), json!(false)));
    // A Query does not show it yet.
    let entry = remove_entry(&stack, 3).await;
    assert_eq!(page(0).await, (2, json!(2), json!(true)));
    let store = dynamodb(&stack);
    let put = store.put_item().table_name("marketplace-market").set_item(Some(entry));
    let put_back = proxy.while_held("GetItem", 1, async { put.send().await.unwrap() });
    let (found, _) = tokio::join!(page(2), put_back);
    assert_eq!(found, (1, json!(3), json!(true)), "it is found by its number");

    // As time to live removes them.
    remove_entry(&stack, 1).await;
    remove_entry(&stack, 2).await;
    let reply = changes(&running.client, &key, 1).await;
    let expected = json!({"error": {"code": "positions.expired", "params": {"position": 1}}});
    assert_eq!((reply.status, reply.json()), (410, expected));
    assert_eq!(page(2).await, (2, json!(4), json!(false)), "what follows is there");
    remove_entry(&stack, 3).await;
    remove_entry(&stack, 4).await;
    assert_eq!(page(4).await, (0, json!(4), json!(false)), "nothing has changed for 28 days");
    assert_eq!(changes(&running.client, &key, 3).await.status, 410);
    assert_eq!(changes(&running.client, &key, 5).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_at_most_a_thousand_changes_and_costs_one_query_or_two_beside_the_key() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = busy_key(&stack).await;
    let listings: Vec<Value> = (1..=1_100).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    let mut mirror = Mirror { client: &running.client, key: &key, listings: Market::new(), position: 0 };
    // Batches have 98 changes.
    for (more, known) in [(true, 980), (false, 1_100)] {
        proxy.take_calls();
        assert_eq!((mirror.follow().await, mirror.listings.len()), (more, known));
        let calls = proxy.take_calls();
        assert_eq!((calls.len(), AwsCall::count(&calls, "Query")), (2, 1), "{calls:?}");
    }
    assert_eq!(mirror.listings[&uuid(1_100).to_string()]["price_usd"], "1.00");
    for version in 2..=200 {
        stack.feed(&[listing(1, "1.00", "2026-11-20T10:00:00Z", version)]).await;
    }
    proxy.take_calls();
    assert!(!mirror.follow().await, "small batches fill a page as well");
    assert_eq!(AwsCall::count(&proxy.take_calls(), "Query"), 2);
}
