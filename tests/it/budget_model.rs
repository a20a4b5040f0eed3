//! The token bucket under random clocks, instances, limits, revocations and lost answers, compared with a plain
//! count.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use api::auth::{Gate, KeyText, Refusal};
use common::aws::{Environment, Patience};
use common::clock::{Clock, ManualClock};
use common::scope::{Budget, Scope};
use local::aws::limits::{Latency, Limits, Rate, Throughput};
use local::environment::Variables;
use proptest::prelude::*;
use tests::{Fault, Proxy, Stack, play_histories};

#[derive(Clone, Debug)]
enum Step {
    /// This many requests at once to one instance, for one scope.
    Ask { instance: usize, scope: usize, requests: usize },
    /// Time passes on every clock.
    Wait { seconds: u16 },
    /// From now on answers of key writes are lost, one in `one_in + 1`. Zero ends this.
    Lose { one_in: usize },
    /// The key's limit changes, as it does with the tier.
    Limit { limit: u32 },
    /// The key is revoked.
    Revoke,
}

/// Returns the seconds by which each instance's clock is wrong, and what happens.
fn histories() -> impl Strategy<Value = ([i64; 3], Vec<Step>)> {
    ([-30i64..=30, -30i64..=30, -30i64..=30], steps())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0usize..3, 0usize..2, 1usize..12).prop_map(|(instance, scope, requests)| Step::Ask { instance, scope, requests }),
        3 => (0u16..70).prop_map(|seconds| Step::Wait { seconds }),
        2 => (0usize..4).prop_map(|one_in| Step::Lose { one_in }),
        1 => (0u32..12).prop_map(|limit| Step::Limit { limit }),
        1 => Just(Step::Revoke),
    ];
    prop::collection::vec(step, 1..40)
}

/// What was asked and admitted, counted per scope and minute from outside.
#[derive(Default)]
struct Model {
    admitted: HashMap<(usize, i64), u32>,
    asked: HashMap<(usize, i64), u32>,
    largest_limit: HashMap<(usize, i64), u32>,
    /// How many answers were lost. Each may have cost a token, if another request came in between, or a request.
    lost: HashMap<(usize, i64), u32>,
    /// Minutes in which the store throttled a request for good, the limit changed or the key was revoked. In these the
    /// limit is only an upper bound.
    disturbed: HashSet<(usize, i64)>,
    revoked: bool,
}

struct World {
    stack: Stack,
    is_limited: bool,
    proxy: Proxy,
    /// How many answers were lost so far.
    lost: Arc<AtomicU32>,
    gates: Vec<(Gate, Arc<ManualClock>)>,
    text: String,
    key_id: common::ids::KeyId,
}

const SCOPES: [Scope; 2] = [Scope::CatalogRead, Scope::OrdersRead];

impl World {
    async fn new(offsets: [i64; 3], limits: Option<Limits>) -> Self {
        let stack = Stack::new().await;
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        let variables = Variables::new(&proxy.url);
        let environment = Environment::read(&|name| variables.get(name)).unwrap();
        let noon: common::timestamp::Timestamp = tests::NOON.parse().unwrap();
        let gates = offsets.map(|offset| {
            let clock = Arc::new(ManualClock::at(noon.plus_millis(offset * 1_000)));
            let dyn_clock: Arc<dyn Clock> = clock.clone();
            (Gate::new(environment.dynamodb(Patience::Request), "marketplace-keys".to_owned(), dyn_clock), clock)
        });
        let (text, record) = stack.key_of(tests::uuid(1).into(), &SCOPES).await;
        tests::set_limit(&stack, &text, 7).await;
        if let Some(limits) = limits {
            stack.aws.limits().set(limits);
        }
        let (is_limited, lost, gates) = (limits.is_some(), Arc::default(), gates.into());
        Self { stack, is_limited, proxy, lost, gates, text, key_id: record.key_id }
    }

    async fn ask(&self, instance: usize, scope: usize, requests: usize, limit: u32, model: &mut Model) {
        let (gate, clock) = &self.gates[instance];
        let hash = KeyText::parse(&self.text).unwrap().hash();
        let minute = (scope, clock.now().minute());
        let lost_before = self.lost.load(Ordering::Relaxed);
        let verdicts = (0..requests).map(|_| gate.admit(&hash, Budget::Scope(SCOPES[scope])));
        let verdicts = futures_util::future::join_all(verdicts).await;
        let largest = model.largest_limit.entry(minute).or_default();
        *largest = limit.max(*largest);
        let admitted = model.admitted.entry(minute).or_default();
        for verdict in verdicts {
            match verdict {
                Ok(grant) => {
                    *admitted += 1;
                    assert!(!model.revoked, "a revoked key was admitted");
                    assert!(grant.rate.remaining < grant.rate.limit, "{:?}", grant.rate);
                }
                Err(refused) if model.revoked => assert!(matches!(
                    refused.reason,
                    Refusal::KeyInvalid | Refusal::Store(_) | Refusal::BudgetSpent { .. }
                )),
                Err(refused) => {
                    let is_by_store = matches!(refused.reason, Refusal::Store(_));
                    assert!(
                        is_by_store || matches!(refused.reason, Refusal::BudgetSpent { .. }),
                        "{:?}",
                        refused.reason
                    );
                    if self.is_limited && is_by_store {
                        model.disturbed.insert(minute);
                    }
                }
            }
        }
        assert!(*admitted <= *largest, "{admitted} admitted of {largest} in {minute:?}");
        let asked = model.asked.entry(minute).or_default();
        *asked += u32::try_from(requests).unwrap();
        let lost = model.lost.entry(minute).or_default();
        *lost += self.lost.load(Ordering::Relaxed) - lost_before;
        if model.revoked {
            model.disturbed.insert(minute);
        }
        if !model.disturbed.contains(&minute) {
            let most = limit.min(*asked);
            let is_exact = (most.saturating_sub(*lost)..=most).contains(admitted);
            assert!(is_exact, "{admitted} of {asked} in {minute:?}, and {lost} answers lost");
        }
    }
}

/// Plays a history, and returns how many calls the store refused because of its limits.
async fn play(offsets: [i64; 3], steps: Vec<Step>, limits: Option<Limits>) -> usize {
    let world = World::new(offsets, limits).await;
    let (mut model, mut limit) = (Model::default(), 7);
    for step in steps {
        match step {
            Step::Ask { instance, scope, requests } => world.ask(instance, scope, requests, limit, &mut model).await,
            Step::Wait { seconds } => {
                let by = Duration::from_secs(seconds.into());
                world.gates.iter().for_each(|(_, clock)| clock.advance(by));
            }
            Step::Lose { one_in } => {
                let (mut calls, lost) = (0, Arc::clone(&world.lost));
                world.proxy.plan(move |_| {
                    calls += 1;
                    let is_lost = one_in > 0 && calls % (one_in + 1) == 0;
                    lost.fetch_add(u32::from(is_lost), Ordering::Relaxed);
                    if is_lost { Fault::LoseAnswer } else { Fault::None }
                });
            }
            Step::Limit { limit: new } => {
                limit = new;
                model.disturbed.extend(model.asked.keys().copied());
                tests::set_limit(&world.stack, &world.text, new).await;
            }
            Step::Revoke => {
                world.stack.admin.keys().revoke(world.key_id).await.unwrap();
                model.revoked = true;
            }
        }
    }
    world.stack.aws.limits().take_report().refused.len()
}

#[test]
fn random_histories_admit_exactly_the_limit_or_fewer_after_faults() {
    play_histories(24, &histories(), async |(offsets, steps)| assert_eq!(play(offsets, steps, None).await, 0));
}

#[test]
fn random_histories_admit_exactly_the_limit_or_fewer_while_the_store_throttles() {
    let partition = Throughput { read: Rate::UNLIMITED, write: Rate { per_second: 400.0, burst: 2.0 } };
    let latency = Latency { median: Duration::from_millis(2), p99: Duration::from_millis(20) };
    let limits = Limits { partition, latency, ..Limits::unlimited() };
    let refused = AtomicUsize::new(0);
    play_histories(10, &histories(), async |(offsets, steps)| {
        refused.fetch_add(play(offsets, steps, Some(limits)).await, Ordering::Relaxed);
    });
    assert!(refused.into_inner() > 0);
}
