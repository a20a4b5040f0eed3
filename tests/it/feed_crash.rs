//! Kills the functions' process at random points while it works off the feed. Nothing is lost and nothing is applied
//! twice: the final state is the one of the newest messages applied once each.
//!
//! Random histories of a market as feed messages: every type that goes into the tables, with versions out of order
//! and repeated.

use common::resources::Queue;
use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use common::clock::{Clock, SystemClock};
use common::ids::UserId;
use common::timestamp::Timestamp;
use local::aws::limits::Limits;
use local::environment::Variables;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use tests::{
    Stack, TestQueue, answers, assert_orders_are_dense, assert_same, assert_the_log_tells_all, balance, item, listing,
    local, marketctl, marketplace, order, quote, tables, uuid,
};
use tokio::process::Child;
use uuid::Uuid;

/// A queue that takes longer than this will never get so short.
const BACKLOG_TIMEOUT: Duration = Duration::from_mins(3);

async fn survives(seed: u64, count: usize, limits: Option<Limits>) {
    let now = SystemClock::new().now();
    let history = History::from_seed(seed, count, now);
    let reference = Stack::new().await;
    reference.clock.set_wall(now);
    reference.feed(&history.newest).await;

    let stack = Stack::new().await;
    if let Some(limits) = limits {
        stack.aws.limits().set(limits);
    }
    let queue = stack.queue(Queue::Feed);
    // The messages that a killed process was working on come back after two seconds instead of a minute and a half.
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "2").await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let sent = marketctl(&variables, &["--json", "feed", "send", "-"], &history.messages.join("\n")).await;
    assert_eq!((sent.code, &sent.json()["sent"]), (0, &count.into()), "{sent:?}");
    for backlog in history.kills {
        let (mut process, _) = functions(&stack).await;
        let reached = tokio::time::timeout(BACKLOG_TIMEOUT, worked_off(&queue, backlog)).await;
        reached.unwrap_or_else(|_| panic!("seed {seed} never gets down to {backlog} messages"));
        process.kill().await.unwrap();
        assert!(queue.count().await > 0, "seed {seed} was done before the kill at {backlog} messages");
    }
    let (_process, _) = functions(&stack).await;
    queue.wait_until_empty().await;
    stack.aws.limits().lift();

    let letters = stack.queue(Queue::FeedDead).take_all_letters().await;
    assert!(letters.iter().all(|letter| letter.attribute("field") == "type"), "{letters:?}");
    let mut refused: Vec<String> = letters.into_iter().map(|letter| letter.body).collect();
    // A kill between sending the copy and the acknowledgement makes a second copy.
    refused.dedup();
    assert_eq!(refused, history.invalid, "seed {seed}");
    assert_same(&tables(&stack).await, &tables(&reference).await, &format!("tables of seed {seed}"));
    assert_orders_are_dense(&stack).await;
    assert_the_log_tells_all(&stack).await;
    let (users, variants) = (users(), variants());
    let [found, expected] = [&stack, &reference].map(|stack| answers(stack, now, &users, &variants));
    assert_same(&found.await, &expected.await, &format!("answers of seed {seed}"));
}

/// Starts a process that runs only the functions.
async fn functions(stack: &Stack) -> (Child, Value) {
    local(&["--aws-endpoint", &stack.aws.endpoint_url]).await
}

async fn worked_off(queue: &TestQueue, backlog: u64) {
    while queue.count().await > backlog {
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_any_point_do_not_change_the_final_state() {
    for seed in 1..=3 {
        survives(seed, 700, None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_any_point_do_not_change_the_final_state_on_a_store_with_limits() {
    survives(4, 300, Some(Limits::aws())).await;
}

/// `FEED_CRASH_SEEDS=20 FEED_CRASH_MESSAGES=10000 cargo test --release --workspace --test it many_seeds -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run it by hand after a change of the feed"]
async fn many_seeds_and_longer_histories() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (seeds, messages) = (number("FEED_CRASH_SEEDS", 20), number("FEED_CRASH_MESSAGES", 10_000));
    for seed in 1..=seeds {
        survives(1_000 + seed as u64, messages, None).await;
        println!("seed {seed} of {seeds}: {messages} messages");
    }
}

/// Kills per history. Fewer than the receives of a message, so kills alone make no message a dead letter.
const KILLS_PER_HISTORY: usize = 4;
const USERS: u16 = 6;
const VARIANTS: u16 = 30;
const MARKETPLACES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The history that a seed makes.
struct History {
    /// The messages in the order in which they are sent.
    messages: Vec<String>,
    /// The invalid ones among them, sorted.
    invalid: Vec<String>,
    /// The newest message about each entity, which alone decide the final state.
    newest: Vec<Value>,
    /// The process is killed when the queue is down to this many messages, one entry per kill.
    kills: Vec<u64>,
}

impl History {
    fn from_seed(seed: u64, count: usize, now: Timestamp) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let steps = vec((0u8..100, any::<u16>(), 1u64..=6), count).new_tree(&mut runner).unwrap().current();
        let left = vec(count / 10..count, KILLS_PER_HISTORY).new_tree(&mut runner).unwrap().current();
        let mut kills: Vec<u64> = left.into_iter().map(|left| left as u64).collect();
        kills.sort_by_key(|left| std::cmp::Reverse(*left));
        let (mut messages, mut invalid, mut newest) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (index, (kind, number, version)) in steps.into_iter().enumerate() {
            if kind == 0 {
                let text = json!({"type": "bogus", "number": index}).to_string();
                invalid.push(text.clone());
                messages.push(text);
                continue;
            }
            let message = message(kind, number, version, now);
            messages.push(message.to_string());
            let known = newest.entry(subject(&message)).or_insert((0, Value::Null));
            if version > known.0 {
                *known = (version, message);
            }
        }
        invalid.sort();
        Self { messages, invalid, newest: newest.into_values().map(|(_, message)| message).collect(), kills }
    }
}

fn users() -> Vec<UserId> {
    (0..USERS).map(user).collect()
}

fn variants() -> Vec<Uuid> {
    (0..VARIANTS).map(|number| uuid(number.into())).collect()
}

fn user(number: u16) -> UserId {
    uuid(1_000 + u128::from(number % USERS)).into()
}

/// Makes a message. Its content depends only on its entity, its version and the time.
fn message(kind: u8, number: u16, version: u64, now: Timestamp) -> Value {
    let minutes = |minutes: i64| now.plus_millis(minutes * 60_000).to_string();
    let phase = |number: u16| (u64::from(number) + version) % 3;
    let price = |number: u16| format!("{}.{version:02}", number % 50 + 1);
    match kind {
        1..10 => {
            let number = number % MARKETPLACES.len() as u16;
            marketplace(MARKETPLACES[usize::from(number)], phase(number) > 0, version)
        }
        10..30 => {
            let number = number % 150;
            let id = format!("item-{number}");
            match phase(number) {
                0 => json!({"type": "item", "id": id, "removed": true, "version": version}),
                phase => item(&id, "skin", Some(&format!("{phase} {id} {version}")), version),
            }
        }
        30..50 => {
            let number = number % (VARIANTS * MARKETPLACES.len() as u16);
            let (variant, marketplace) =
                (uuid(u128::from(number % VARIANTS)), MARKETPLACES[usize::from(number / VARIANTS)]);
            let observed_at = minutes(version.cast_signed() - 60);
            quote(variant, marketplace, &[&price(number), "7.00", "8.50"], &observed_at)
        }
        50..75 => {
            let number = number % 300;
            let mut listing = listing(number.into(), &price(number), &minutes(-i64::from(number)), version);
            listing["status"] = json!(["active", "sold", "active"][phase(number) as usize]);
            listing
        }
        75..90 => {
            let number = number % 400;
            let mut order = order(user(number), number.into(), &minutes(-2_000 * i64::from(number)), version);
            order["total_usd"] = json!(price(number));
            order
        }
        _ => {
            let number = number % USERS;
            balance(user(number), &price(number), "2.00", &price(number + 2), version)
        }
    }
}

/// Returns a name for the entity that a message is about.
fn subject(message: &Value) -> String {
    let identity = match message["type"].as_str().unwrap() {
        "marketplace" => vec!["key"],
        "quote" => vec!["variant_id", "marketplace"],
        "balance" => vec!["account_id"],
        _ => vec!["id"],
    };
    let identity: Vec<&str> = identity.into_iter().map(|field| message[field].as_str().unwrap()).collect();
    format!("{} {}", message["type"], identity.join(" "))
}
