//! Runs the programs of the guide for client developers: they stay within their budget, outlast failures, and see one
//! state.

use admin::keys::NewKey;
use common::scope::{Scope, Tier};
use serde_json::{Value, json};
use tests::{Fault, Proxy, RunningInstance, Stack, Walker, item, listing, marketplace, quote, sold_listing, uuid};
use tokio::sync::watch;
use uuid::Uuid;

/// A program asks for two records at a time.
const ITEMS: u32 = 24;
const PAGES: usize = 12;
const LIMIT: u32 = 10;
/// The number of the request that begins the second round, after all pages, an item, and two pages of listings.
const SECOND_ROUND: usize = PAGES + 1 + 2 + 1;

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
    let stack = Stack::new().await;
    let items: Vec<_> = (0..ITEMS).map(priced).collect();
    stack.feed(&items).await;
    let listings: Vec<_> = (1..=3).map(|number| listing(number, "5.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    stack.feed(&[marketplace("one", true, 1), quote(uuid(1), "one", &["5.00"], "2026-11-20T11:00:00Z")]).await;
    let key = NewKey {
        user_id: Uuid::new_v4().into(),
        name: None,
        tier: Tier::Free,
        limit_override: Some(limit),
        scopes: Scope::ALL.into(),
        expires_at: None,
    };
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
    /// Puts the proxy in front of an API. It holds back the requests with these numbers. Those that it refuses do not
    /// count.
    async fn start(running: &RunningInstance, numbers: &'static [usize]) -> Self {
        let front = Proxy::start(&running.instance.base_url).await;
        let (wait, waiting) = watch::channel(0);
        let (allowed, is_allowed) = watch::channel(0);
        let mut forwarded = 0;
        front.plan(move |_| {
            let next = forwarded + 1;
            if numbers.contains(&next) && *is_allowed.borrow() < next {
                wait.send_replace(next);
                return Fault::Refuse;
            }
            forwarded = next;
            Fault::None
        });
        Self { front, waiting, allowed }
    }

    /// Waits until this request is held back, changes the market, and lets the request through.
    async fn change_before(&mut self, number: usize, stack: &Stack, running: &RunningInstance, change: Value) {
        self.waiting.wait_for(|waiting| *waiting == number).await.unwrap();
        stack.feed(&[change]).await;
        running.wait(2);
        self.allowed.send_replace(number);
    }

    /// Returns how many answers there were, and how many of them were a 304.
    fn answers(&self) -> (usize, usize) {
        let statuses: Vec<_> = self.front.take_calls().into_iter().filter_map(|call| call.status).collect();
        (statuses.len(), statuses.iter().filter(|status| **status == 304).count())
    }
}

fn all_items(lines: &[Value], count: u32) {
    let ids: Vec<_> = (0..count).map(id).collect();
    assert_eq!(lines[0], json!({"items": ids, "one_state": true}));
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
        assert_eq!(front.take_calls().len(), PAGES + 1 + 2, "{walker:?}");
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
                2 | 9 => Fault::Refuse,
                5 => Fault::LoseAnswer,
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

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_begins_again_if_the_state_changes_and_a_quiet_round_takes_one_request() {
    for walker in Walker::ALL {
        let (stack, key) = market(1_000).await;
        let running = stack.instance().await;
        let mut holding = Holding::start(&running, &[3]).await;
        let walk = walker.start(&holding.front.url, &key, 2);
        holding.change_before(3, &stack, &running, priced(ITEMS)).await;
        let lines = walk.lines().await;
        all_items(&lines, ITEMS + 1);
        assert_eq!(lines[2], lines[3]);
        // Two pages of the old state and one of the new one, all 13 of it, an item, two pages of listings, and a quiet
        // round. The page of the new state and that of the quiet round had not changed.
        assert_eq!(holding.answers(), (2 + 1 + 13 + 1 + 2 + 1, 2), "{walker:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_comes_to_an_end_if_the_state_changes_on_every_try() {
    for walker in Walker::ALL {
        let (stack, key) = market(1_000).await;
        let running = stack.instance().await;
        // The second page of each try.
        let mut holding = Holding::start(&running, &[2, 4, 6]).await;
        let walk = walker.start(&holding.front.url, &key, 1);
        for (number, added) in [(2, ITEMS), (4, ITEMS + 1), (6, ITEMS + 2)] {
            holding.change_before(number, &stack, &running, priced(added)).await;
        }
        let lines = walk.lines().await;
        let ids: Vec<_> = (0..ITEMS + 3).map(id).collect();
        assert_eq!(lines[0], json!({"items": ids, "one_state": false}));
        // Two tries of two pages, all 14 pages of the third, an item, and two pages of listings. No page is a 304,
        // because the total is another one on each try.
        assert_eq!(holding.answers(), (2 + 2 + 14 + 1 + 2, 0), "{walker:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_shows_what_has_changed_since_the_one_before() {
    for walker in Walker::ALL {
        let (stack, key) = market(1_000).await;
        let running = stack.instance().await;
        let mut holding = Holding::start(&running, &[SECOND_ROUND]).await;
        let walk = walker.start(&holding.front.url, &key, 2);
        holding.change_before(SECOND_ROUND, &stack, &running, sold_listing(2, 2)).await;
        let lines = walk.lines().await;
        assert_eq!(lines[2], json!({"listings": [uuid(1), uuid(2), uuid(3)]}));
        assert_eq!(lines[3], json!({"listings": [uuid(1), uuid(3)]}));
        // The new state has one page. The walk asks for it again.
        assert_eq!(holding.answers(), (SECOND_ROUND + 1, 1), "{walker:?}");
    }
}
