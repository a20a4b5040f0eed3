//! The read model through the real log, compared with plain maps: random writers, versions, bases, lost bases,
//! compactions that die, restarts, and clocks of which either hand may stand still. All of it is played a second time on
//! a store that is slow, throttles writers and shows half of transactions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::clock::Clock;
use common::records::{PublicItem, PublicListing};
use local::aws::limits::{Latency, Limits, Rate, Throughput};
use proptest::prelude::*;
use serde_json::{Value, json};
use tests::{Fault, Proxy, RunningInstance, Stack, base_bucket, compaction, item, listing, play_histories, uuid};

#[derive(Clone, Debug)]
enum Step {
    /// A batch of messages, some repeated or out of order. Each is a record, a version, and the record's value, or
    /// `None` if it is removed.
    Write(Vec<(u8, u8, Option<u16>)>),
    /// An instance starts.
    Start,
    /// Both streams are compacted, through a proxy that refuses everything after this many calls.
    Compact { calls: Option<u8> },
    /// The objects of every base are overwritten.
    LoseBase,
    /// Only an instance's wall clock moves, forwards or back. It moves by tens of seconds, so that it never undoes
    /// the two seconds that pass before the instance is asked: otherwise neither hand would show that they have
    /// passed.
    Wall { instance: usize, tens: i8 },
    /// Two seconds pass on one hand of an instance's clock or on both, and then it is asked.
    Ask { instance: usize, hands: Hands },
}

#[derive(Clone, Copy, Debug)]
enum Hands {
    Both,
    Wall,
    Monotonic,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let message = (0u8..24, 1u8..6, prop::option::weighted(0.7, 1u16..400));
    let hands = prop::sample::select(vec![Hands::Both, Hands::Wall, Hands::Monotonic]);
    let step = prop_oneof![
        6 => prop::collection::vec(message, 1..8).prop_map(Step::Write),
        1 => Just(Step::Start),
        4 => prop::option::weighted(0.3, 0u8..8).prop_map(|calls| Step::Compact { calls }),
        1 => Just(Step::LoseBase),
        2 => (0usize..4, any::<i8>()).prop_map(|(instance, tens)| Step::Wall { instance, tens }),
        4 => (0usize..4, hands).prop_map(|(instance, hands)| Step::Ask { instance, hands }),
    ];
    prop::collection::vec(step, 1..40)
}

/// How many histories are played: some 320 steps, and on a store with limits half as many.
const HISTORIES: u32 = 16;

/// The newest version of each record, and its value unless it is removed.
type Model = BTreeMap<u8, (u8, Option<u16>)>;

/// Makes a message. Records with even ids are listings with the value as price, those with odd ids items with the
/// value as name.
fn message(id: u8, version: u8, now: Option<u16>) -> Value {
    let number = now.unwrap_or(1);
    if id.is_multiple_of(2) {
        let price = format!("{}.{:02}", number / 100, number % 100);
        let mut message = listing(id.into(), &price, "2026-11-20T10:00:00Z", version.into());
        message["status"] = json!(if now.is_some() { "active" } else { "sold" });
        message
    } else if now.is_some() {
        item(&format!("item-{id:02}"), "skin", Some(&format!("Name {number:03}")), version.into())
    } else {
        json!({"type": "item", "id": format!("item-{id:02}"), "removed": true, "version": version})
    }
}

fn apply(model: &mut Model, batch: &[(u8, u8, Option<u16>)]) {
    for &(id, version, now) in batch {
        let known = model.entry(id).or_insert((0, None));
        if version > known.0 {
            *known = (version, now);
        }
    }
}

/// Returns what a walk over all pages must show.
fn expected(model: &Model, parity: u8, name: impl Fn(u8) -> String) -> Vec<String> {
    let there = model.iter().filter(|(id, _)| **id % 2 == parity);
    let mut there: Vec<(u16, u8)> = there.filter_map(|(id, (_, now))| Some(((*now)?, *id))).collect();
    there.sort_unstable();
    there.into_iter().map(|(_, id)| name(id)).collect()
}

async fn assert_agrees(stack: &Stack, running: &RunningInstance, model: &Model) {
    let listings = expected(model, 0, |id| uuid(id.into()).to_string());
    let items = expected(model, 1, |id| format!("item-{id:02}"));
    // A key of its own, because a clock that is behind those of other instances would be fenced off.
    let key = stack.full_key().await;
    for (path, expected) in [("listings?sort=price_asc", listings), ("catalog?q=NAME", items)] {
        let mut walked = Vec::new();
        for page in 1.. {
            let reply = running.client.get(&key, &format!("/v1/public/{path}&page_size=5&page={page}")).await;
            assert_eq!(reply.status, 200, "{:?}", reply.json());
            assert_eq!(reply.json()["total"].as_u64(), Some(expected.len() as u64), "{path}");
            if reply.ids().is_empty() {
                break;
            }
            walked.extend(reply.ids());
        }
        assert_eq!(walked, expected, "{path}");
    }
}

/// Runs the compactions. A week passes first, so that a base is always due.
async fn compact(stack: &Stack, calls: Option<u8>) {
    stack.clock.advance(Duration::from_hours(7 * 24));
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut left = calls.map(i16::from);
    proxy.plan(move |_| {
        left = left.map(|left| left - 1);
        if left.is_some_and(|left| left < 0) { Fault::Refuse } else { Fault::None }
    });
    let listings = compaction::<PublicListing>(&proxy.url, stack.clock.clone());
    let items = compaction::<PublicItem>(&proxy.url, stack.clock.clone());
    let outcomes = (listings.run().await, items.run().await);
    assert!(calls.is_some() || (outcomes.0.is_ok() && outcomes.1.is_ok()), "{outcomes:?}");
}

async fn lose_base(stack: &Stack) {
    let bucket = base_bucket(&stack.aws.endpoint_url);
    let listings = stack.log::<PublicListing>().standing().await.unwrap();
    let items = stack.log::<PublicItem>().standing().await.unwrap();
    for manifest in [listings.manifest, items.manifest].into_iter().flatten() {
        let manifest = manifest.unwrap();
        let deltas = manifest.deltas.into_iter().map(|delta| delta.object);
        for object in manifest.parts.into_iter().chain(deltas) {
            bucket.put(&object.key, Bytes::from_static(b"lost")).await.unwrap();
        }
    }
}

fn pass(running: &RunningInstance, hands: Hands) {
    let two = Duration::from_secs(2);
    match hands {
        Hands::Both => running.clock.advance(two),
        Hands::Wall => running.clock.set_wall(running.clock.now().plus_millis(2_000)),
        Hands::Monotonic => {
            let wall = running.clock.now();
            running.clock.advance(two);
            running.clock.set_wall(wall);
        }
    }
}

/// Writes messages. If the store is limited, an instance starts at the same time, and is returned.
async fn write(stack: &Stack, messages: &[Value], is_limited: bool) -> Option<RunningInstance> {
    if !is_limited {
        stack.feed_outcomes(messages).await;
        return None;
    }
    let (_, fresh) = tokio::join!(stack.feed_outcomes(messages), stack.instance());
    Some(fresh)
}

/// Plays a history, and returns how many calls the store refused because of its limits.
async fn play(steps: Vec<Step>, limits: Option<Limits>) -> usize {
    let stack = Stack::new().await;
    if let Some(limits) = limits {
        stack.aws.limits().set(limits);
    }
    let mut instances = vec![stack.instance().await];
    let mut model = Model::new();
    for (number, step) in (0..).zip(steps) {
        match step {
            Step::Write(mut batch) => {
                for (_, version, _) in &mut batch {
                    *version += number / 2;
                }
                apply(&mut model, &batch);
                let messages: Vec<Value> = batch.iter().map(|&(id, version, now)| message(id, version, now)).collect();
                if let Some(beside) = write(&stack, &messages, limits.is_some()).await {
                    beside.wait(2);
                    assert_agrees(&stack, &beside, &model).await;
                    instances.push(beside);
                }
            }
            Step::Start => {
                let fresh = stack.instance().await;
                assert_agrees(&stack, &fresh, &model).await;
                instances.push(fresh);
            }
            Step::Compact { calls } => compact(&stack, calls).await,
            Step::LoseBase => lose_base(&stack).await,
            Step::Wall { instance, tens } => {
                let clock = &instances[instance % instances.len()].clock;
                clock.set_wall(clock.now().plus_millis(i64::from(tens) * 10_000));
            }
            Step::Ask { instance, hands } => {
                let running = &instances[instance % instances.len()];
                pass(running, hands);
                assert_agrees(&stack, running, &model).await;
            }
        }
    }
    instances.push(stack.instance().await);
    for running in &instances {
        running.wait(2);
        assert_agrees(&stack, running, &model).await;
    }
    stack.aws.limits().take_report().refused.len()
}

#[test]
fn no_history_loses_doubles_or_revives_a_record() {
    play_histories(HISTORIES, &steps(), async |steps| assert_eq!(play(steps, None).await, 0));
}

#[test]
fn no_history_loses_doubles_or_revives_a_record_on_a_store_with_limits() {
    let limits = Limits {
        table: Throughput { read: Rate::UNLIMITED, write: Rate { per_second: 400.0, burst: 10.0 } },
        only_table: Some("marketplace-market"),
        latency: Latency { median: Duration::from_millis(1), p99: Duration::from_millis(10) },
        transaction_latency: Latency { median: Duration::from_millis(8), p99: Duration::from_millis(60) },
        lag: Duration::from_millis(50),
        ..Limits::unlimited()
    };
    let refused = AtomicUsize::new(0);
    play_histories(HISTORIES / 2, &steps(), async |steps| {
        refused.fetch_add(play(steps, Some(limits)).await, Ordering::Relaxed);
    });
    assert!(refused.into_inner() > 0);
}
