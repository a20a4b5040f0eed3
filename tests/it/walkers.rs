//! Runs the programs of the guide for client developers: they stay within their budget, outlast failures, and miss nothing
//! that stays.

use std::collections::BTreeSet;
use std::future::pending;

use admin::keys::NewKey;
use common::records::PublicListing;
use common::scope::Scope;
use common::timestamp::Timestamp;
use serde_json::{Value, json};
use tests::{
    Fault, Proxy, RunningInstance, Stack, Walker, item, listing, marketplace, new_key, quote, sold_listing, uuid,
};
use tokio::sync::watch;
use uuid::Uuid;

use crate::changes::remove_entry;

/// A program asks for at most ten records at a time, and begins each page within the one before.
const ITEMS: u32 = 24;
const PAGES: usize = 4;
const LIMIT: u32 = 3;
/// How many requests the first round takes: all pages, an item, a page of listings, and the changes behind it.
const FIRST_ROUND: usize = PAGES + 1 + 1 + 1;

fn id(number: u32) -> String {
    format!("item-{number:02}")
}

/// Returns an item whose first variant has prices.
fn priced(number: u32) -> Value {
    let mut item = item(&id(number), "skin", Some(&id(number)), 1);
    item["variants"] = json!([1, 2].map(|variant| json!({
        "variant_id": uuid(u128::from(100 * number + variant)), "wear": null, "stattrak": false, "market_hash_name": null,
    })));
    item
}

/// Fills a market, and returns a key with this limit.
async fn market(limit: u32) -> (Stack, String) {
    let (stack, key) = empty_market(limit).await;
    let items: Vec<_> = (0..ITEMS).map(priced).collect();
    stack.feed(&items).await;
    let listings: Vec<_> = (1..=3).map(|number| listing(number, "5.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    stack.feed(&[marketplace("one", true, 1), quote(uuid(1), "one", &["5.00"], "2026-11-20T11:00:00Z")]).await;
    (stack, key)
}

async fn empty_market(limit: u32) -> (Stack, String) {
    let stack = Stack::new().await;
    let key = NewKey { limit_override: Some(limit), ..new_key(Uuid::new_v4().into(), &Scope::ALL) };
    let (text, _) = stack.key_with(key).await;
    (stack, text)
}

/// A proxy that holds requests back: it closes their connections until the test lets them through.
struct Holding {
    front: Proxy,
    waiting: watch::Receiver<usize>,
    allowed: watch::Sender<usize>,
}

impl Holding {
    /// Puts the proxy in front of an API. It holds back all requests from this number on. Those that it refuses do not
    /// count.
    async fn start(running: &RunningInstance, first: usize) -> Self {
        let front = Proxy::start(&running.instance.base_url).await;
        let (wait, waiting) = watch::channel(0);
        let (allowed, is_allowed) = watch::channel(first - 1);
        let mut forwarded = 0;
        front.plan(move |_| {
            let next = forwarded + 1;
            if *is_allowed.borrow() < next {
                wait.send_replace(next);
                return Fault::Refuse;
            }
            forwarded = next;
            Fault::None
        });
        Self { front, waiting, allowed }
    }

    /// Waits until the next request is held back. Returns its number.
    async fn held_back(&mut self) -> usize {
        let number = *self.allowed.borrow() + 1;
        *self.waiting.wait_for(|waiting| *waiting == number).await.unwrap()
    }

    /// Waits until the next request is held back, changes the market, and lets the request through.
    async fn change(&mut self, stack: &Stack, running: &RunningInstance, changes: &[Value]) {
        let number = self.held_back().await;
        stack.feed(changes).await;
        running.wait(2);
        self.allowed.send_replace(number);
    }

    fn let_all_through(&self) {
        self.allowed.send_replace(usize::MAX);
    }

    /// Returns how many requests were answered.
    fn answers(&self) -> usize {
        self.front.take_calls().into_iter().filter(|call| call.status.is_some()).count()
    }
}

fn all_items(lines: &[Value], count: u32) {
    let ids: Vec<_> = (0..count).map(id).collect();
    assert_eq!(lines[0], json!({"items": ids}));
    assert_eq!(lines[1], json!({"priced": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_waits_for_its_budget_and_is_never_refused() {
    for walker in Walker::ALL {
        let (stack, key) = market(LIMIT).await;
        let running = stack.instance().await;
        // Two seconds before the budget is full again.
        running.wait(58);
        let front = Proxy::start(&running.instance.base_url).await;
        let walk = walker.start(&front.url, &key, 1);
        front.wait_for_calls(LIMIT as usize).await;
        running.wait(2);
        let lines = walk.lines().await;
        all_items(&lines, ITEMS);
        // A request that is refused would be one more.
        assert_eq!(front.take_calls().len(), FIRST_ROUND, "{walker:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_outlasts_lost_answers_and_503() {
    for walker in Walker::ALL {
        let (stack, key) = market(1_000).await;
        let (running, store) = stack.instance_behind_proxy().await;
        running.client.get(&key, "/v1/public/catalog").await;
        let front = Proxy::start(&running.instance.base_url).await;
        let mut requests = 0;
        front.plan(move |_| {
            requests += 1;
            match requests {
                2 | 6 => Fault::Refuse,
                4 => Fault::LoseAnswer,
                _ => Fault::None,
            }
        });
        let (refused, mut writes) = (watch::Sender::new(0), 0);
        let mut count = refused.subscribe();
        store.plan(move |operation| {
            writes += usize::from(operation == "UpdateItem");
            let is_refused = operation == "UpdateItem" && (4..8).contains(&writes);
            refused.send_modify(|count| *count += usize::from(is_refused));
            if is_refused { Fault::Error("ThrottlingException") } else { Fault::None }
        });
        let lines = walker.start(&front.url, &key, 1).lines().await;
        all_items(&lines, ITEMS);
        assert_eq!(lines[2]["listings"].as_array().unwrap().len(), 3);
        assert!(*count.borrow_and_update() > 0);
    }
}

/// Items and listings that stay, and the changes around them.
struct Churn {
    /// What is there at first.
    market: Vec<Value>,
    /// What happens before each request but the first.
    changes: Vec<Vec<Value>>,
    items: BTreeSet<String>,
}

impl Churn {
    /// Makes a market in which most listings have one price. Before each request, the first ones of both lists go, and
    /// others come.
    fn new() -> Self {
        let price = |number| match number {
            1 => "0.00",
            2..10 => "1.00",
            10..=200 => "5.00",
            201 => "999999999999.99",
            _ => "7.25",
        };
        // Four listings have the same time, so that ids decide.
        let time = |number: u32| Timestamp::from_millis(1_795_100_000_000 - i64::from(number / 4) * 1_000).to_string();
        let removed = |number| json!({"type": "item", "id": id(number), "removed": true, "version": 2});
        let (gone_items, gone_listings) = (1..=40, 10..=110);
        let (mut items, mut listings) = (gone_items.clone(), gone_listings);
        let step = |number: u32| {
            // Now and then more go at once than pages have in common.
            let count = if number.is_multiple_of(3) { 5 } else { 1 };
            let mut changes: Vec<_> = items.by_ref().take(count).map(removed).collect();
            changes.extend(listings.by_ref().take(count).map(|number| sold_listing(number, 2)));
            // A new listing and one that was listed long ago, at the price that most have. A new item.
            let new = |number, at: &str| tests::listing(number, "5.00", at, 1);
            changes.extend([new(1_000 + number, "2026-11-20T11:00:00Z"), new(2_000 + number, "2026-11-01T10:00:00Z")]);
            changes.push(item(&format!("item-00-{number:02}"), "skin", Some("item-00"), 1));
            changes
        };
        Self {
            changes: (0..45).map(step).collect(),
            items: (0..80).filter(|number| !gone_items.contains(number)).map(id).collect(),
            market: (0..80)
                .map(priced)
                .chain((1..=205).map(|number| listing(number, price(number), &time(number), 1)))
                .collect(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_misses_no_item_that_stays_and_the_listings_are_exact() {
    for walker in Walker::ALL {
        let churn = Churn::new();
        let (stack, key) = empty_market(1_000).await;
        stack.feed(&churn.market).await;
        let running = stack.instance().await;
        let mut holding = Holding::start(&running, 2).await;
        let url = holding.front.url.clone();
        let changing = async {
            for changes in &churn.changes {
                holding.change(&stack, &running, changes).await;
            }
            holding.let_all_through();
            pending::<()>().await;
        };
        let lines = tokio::select! {
            lines = walker.start(&url, &key, 1).lines() => lines,
            () = changing => unreachable!(),
        };
        let items: BTreeSet<String> = serde_json::from_value(lines[0]["items"].clone()).unwrap();
        assert!(items.is_superset(&churn.items), "{walker:?}");
        running.wait(2);
        let mut listings = BTreeSet::new();
        for page in 1..=10 {
            let path = format!("/v1/public/listings?page_size=100&page={page}");
            listings.extend(running.client.get(&key, &path).await.ids());
        }
        assert_eq!(lines[2]["listings"], json!(listings), "{walker:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_further_round_takes_one_request_and_shows_what_has_changed() {
    for walker in Walker::ALL {
        let (stack, key) = market(1_000).await;
        let running = stack.instance().await;
        let mut holding = Holding::start(&running, FIRST_ROUND + 2).await;
        let walk = walker.start(&holding.front.url, &key, 3);
        holding.change(&stack, &running, &[sold_listing(2, 2)]).await;
        holding.let_all_through();
        let lines = walk.lines().await;
        all_items(&lines, ITEMS);
        let before = json!({"listings": [uuid(1), uuid(2), uuid(3)]});
        assert_eq!(lines[2..], [before.clone(), before, json!({"listings": [uuid(1), uuid(3)]})]);
        assert_eq!(holding.answers(), FIRST_ROUND + 2, "{walker:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_position_has_expired_walks_again() {
    for walker in Walker::ALL {
        let (stack, key) = market(1_000).await;
        let running = stack.instance().await;
        let mut holding = Holding::start(&running, FIRST_ROUND + 1).await;
        let walk = walker.start(&holding.front.url, &key, 2);
        holding.held_back().await;
        let position = stack.log::<PublicListing>().head().await.unwrap();
        stack.feed(&[sold_listing(2, 2)]).await;
        stack.feed(&[listing(4, "5.00", "2026-11-20T10:00:00Z", 1)]).await;
        remove_entry(&stack, position + 1).await;
        running.wait(2);
        holding.let_all_through();
        let lines = walk.lines().await;
        assert_eq!(lines[3], json!({"listings": [uuid(1), uuid(3), uuid(4)]}), "{walker:?}");
    }
}
