//! The read model through the real log, against a plain map: random writers, versions, restarts and clocks.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tests::{Running, Stack, listing, uuid};

#[derive(Clone, Debug)]
enum Step {
    /// A batch of messages: listing, version, cents, whether it is still active.
    Write(Vec<(u8, u8, u16, bool)>),
    /// An instance starts.
    Start,
    /// An instance's wall clock alone moves, forwards or back.
    Wall { instance: usize, seconds: i8 },
    /// Two seconds pass, and an instance is asked.
    Ask { instance: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let message = (0u8..20, 1u8..6, 1u16..400, prop::bool::weighted(0.7));
    let step = prop_oneof![
        5 => prop::collection::vec(message, 1..8).prop_map(Step::Write),
        1 => Just(Step::Start),
        2 => (0usize..4, any::<i8>()).prop_map(|(instance, seconds)| Step::Wall { instance, seconds }),
        4 => (0usize..4).prop_map(|instance| Step::Ask { instance }),
    ];
    prop::collection::vec(step, 1..30)
}

/// The newest version of each listing, and its price while it is active.
type Model = BTreeMap<u8, (u8, Option<u16>)>;

fn message(id: u8, version: u8, cents: u16, active: bool) -> Value {
    let price = format!("{}.{:02}", cents / 100, cents % 100);
    let mut message = listing(id.into(), &price, "2026-11-20T10:00:00Z", version.into());
    message["status"] = json!(if active { "active" } else { "sold" });
    message
}

fn apply(model: &mut Model, batch: &[(u8, u8, u16, bool)]) {
    for &(id, version, cents, active) in batch {
        let known = model.entry(id).or_insert((0, None));
        if version > known.0 {
            *known = (version, active.then_some(cents));
        }
    }
}

async fn assert_agrees(stack: &Stack, running: &Running, model: &Model) {
    let mut expected: Vec<(u16, u8)> = model.iter().filter_map(|(id, (_, cents))| Some(((*cents)?, *id))).collect();
    expected.sort_unstable();
    let expected: Vec<String> = expected.into_iter().map(|(_, id)| uuid(id.into()).to_string()).collect();
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings?sort=price_asc").await;
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    assert_eq!((reply.json()["total"].as_u64(), reply.ids()), (Some(expected.len() as u64), expected));
}

async fn play(steps: Vec<Step>) {
    let stack = Stack::new().await;
    let mut instances = vec![stack.instance().await];
    let mut model = Model::new();
    for step in steps {
        match step {
            Step::Write(batch) => {
                apply(&mut model, &batch);
                let messages: Vec<Value> =
                    batch.iter().map(|&(id, v, cents, active)| message(id, v, cents, active)).collect();
                stack.feed_outcomes(&messages).await;
            }
            Step::Start => {
                let fresh = stack.instance().await;
                assert_agrees(&stack, &fresh, &model).await;
                instances.push(fresh);
            }
            Step::Wall { instance, seconds } => {
                let clock = &instances[instance % instances.len()].clock;
                let now = shared::clock::Clock::now(&**clock);
                clock.set_wall(now.plus_millis(i64::from(seconds) * 1_000));
            }
            Step::Ask { instance } => {
                let running = &instances[instance % instances.len()];
                running.wait(2);
                assert_agrees(&stack, running, &model).await;
            }
        }
    }
    for running in &instances {
        running.wait(2);
        assert_agrees(&stack, running, &model).await;
    }
}

#[test]
fn no_history_loses_doubles_or_revives_a_listing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&steps(), |steps| {
            runtime.block_on(play(steps));
            Ok(())
        })
        .unwrap();
}
