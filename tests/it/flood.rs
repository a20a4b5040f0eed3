//! Clients that hammer with a key that is refused: each costs a write a second at most, and nobody else notices.

use std::sync::Arc;
use std::time::Duration;

use admin::keys::NewKey;
use api::auth::{Gate, KeyText, Refusal, STRANGERS_A_SECOND};
use common::aws::{Environment, Patience};
use common::clock::ManualClock;
use common::scope::{Budget, Scope, Tier};
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use local::environment::Variables;
use tests::{AwsCall, Fault, HttpReply, PATHS, RunningInstance, Stack, new_key, uuid};

const ME: &str = "/v1/public/me";
const LISTINGS: &str = "/v1/public/listings";

/// Returns a well-formed key that nobody was given.
fn invented(bits: u8) -> String {
    KeyText::from_bits([bits; 32]).reveal().to_owned()
}

fn noon() -> Timestamp {
    tests::NOON.parse().unwrap()
}

/// Makes a key that expires this many seconds after noon.
async fn key_until(stack: &Stack, seconds: i64) -> String {
    let expires_at = Some(noon().plus_millis(seconds * 1_000));
    stack.key_with(NewKey { expires_at, ..new_key(uuid(2).into(), &Scope::ALL) }).await.0
}

/// Sends as many requests at the same time.
async fn get_many(running: &RunningInstance, key: &str, path: &str, requests: usize) -> Vec<HttpReply> {
    join_all((0..requests).map(|_| running.client.get(key, path))).await
}

/// What a client sees of an answer, apart from the request's own id.
fn seen(reply: &HttpReply) -> (u16, &[u8], (u32, u32, u32), &str, &str) {
    (reply.status, &reply.bytes, reply.rate(), reply.header("www-authenticate"), reply.header("cache-control"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_refused_costs_one_write_a_second_and_no_read() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let (revoked, record) = stack.key_of(uuid(1).into(), &Scope::ALL).await;
    stack.admin.keys().revoke(record.key_id).await.unwrap();
    let expired = key_until(&stack, 1).await;
    running.wait(1);
    for key in [invented(9), revoked, expired] {
        for (path, _) in PATHS.iter() {
            proxy.take_calls();
            let first = running.client.get(&key, path).await;
            assert_eq!((first.status, first.rate().0), (401, 0), "{path}");
            assert_eq!(proxy.take_operations(), ["UpdateItem"], "{path}");
            for reply in get_many(&running, &key, path, 5).await {
                assert_eq!(seen(&reply), seen(&first), "{path}");
            }
            assert_eq!(proxy.take_operations(), [""; 0], "{path}");
        }
        running.wait(1);
        assert_eq!(running.client.get(&key, ME).await.status, 401);
        assert_eq!(proxy.take_operations(), ["UpdateItem"]);
    }
    let stored = tests::dynamodb(&stack).scan().table_name("marketplace-keys").send().await.unwrap();
    let rows = stored.items().iter().filter(|row| row["pk"].as_s().unwrap().starts_with("key#"));
    assert_eq!(rows.count(), 2, "an unknown key has no row");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_invented_keys_is_read_and_not_written_and_lets_other_new_keys_in() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let (known, new) = (stack.full_key().await, stack.full_key().await);
    assert_eq!(running.client.get(&known, ME).await.status, 200);
    running.wait(1);
    proxy.take_calls();
    let keys: Vec<String> = (100..200).map(invented).collect();
    let replies = join_all(keys.iter().map(|key| running.client.get(key, ME))).await;
    assert!(replies.iter().all(|reply| reply.status == 401));
    let operations = proxy.take_operations();
    let count = |name: &str| operations.iter().filter(|operation| *operation == name).count();
    let written = usize::try_from(STRANGERS_A_SECOND).unwrap();
    assert_eq!((count("UpdateItem"), count("GetItem")), (written, keys.len() - written));
    for (key, calls) in
        [(&known, vec!["UpdateItem"]), (&new, vec!["GetItem", "UpdateItem"]), (&new, vec!["UpdateItem"])]
    {
        assert_eq!(running.client.get(key, ME).await.status, 200);
        assert_eq!(proxy.take_operations(), calls);
    }
    running.wait(1);
    assert_eq!(running.client.get(&invented(9), ME).await.status, 401);
    assert_eq!(proxy.take_operations(), ["UpdateItem"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_scope_is_remembered_for_its_budget_alone() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.key(&[Scope::CatalogRead]).await;
    proxy.take_calls();
    let first = running.client.get(&key, LISTINGS).await;
    assert_eq!((first.status, first.rate()), (403, (Tier::Free.limit(), Tier::Free.limit(), 60)));
    for reply in get_many(&running, &key, LISTINGS, 5).await {
        assert_eq!(seen(&reply), seen(&first));
    }
    assert_eq!(proxy.take_operations(), ["UpdateItem"]);
    for path in [ME, "/v1/public/catalog", "/v1/public/marketplaces"] {
        assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
    }
    running.wait(1);
    proxy.take_calls();
    let later = running.client.get(&key, LISTINGS).await;
    assert_eq!((later.status, later.rate().2), (403, 59));
    assert_eq!(proxy.take_operations(), ["UpdateItem"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_from_memory_names_the_key_and_the_budget_like_the_first() {
    let stack = Stack::new().await;
    let (text, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
    let (variables, clock) = (Variables::new(&stack.aws.endpoint_url), ManualClock::at(noon()));
    let environment = Environment::read(&|name| variables.get(name)).unwrap();
    let gate = Gate::new(environment.dynamodb(Patience::Request), "marketplace-keys".to_owned(), Arc::new(clock));
    let hash = KeyText::parse(&text).unwrap().hash();
    for budget in [Budget::Scope(Scope::OrdersRead), Budget::Scope(Scope::WalletRead)] {
        for _ in 0..2 {
            let refused = gate.admit(&hash, budget).await.unwrap_err();
            assert!(matches!(refused.reason, Refusal::ScopeMissing(scope) if Some(scope) == budget.scope()));
            assert_eq!((refused.key_id, refused.rate.remaining), (Some(record.key_id), Tier::Free.limit()));
        }
    }
    assert!(gate.admit(&hash, Budget::Scope(Scope::CatalogRead)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_time_with_one_bad_key_share_a_write() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    // Every request has begun before the first verdict is there.
    proxy.set_fault(Fault::Slow(Duration::from_millis(250)));
    for _ in 0..2 {
        proxy.take_calls();
        let replies = get_many(&running, &invented(9), "/v1/public/marketplaces", 100).await;
        assert!(replies.iter().all(|reply| reply.status == 401));
        assert_eq!(proxy.take_operations(), ["UpdateItem"]);
        running.wait(1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_key_waits_for_its_first_verdict_and_then_for_nobody() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    proxy.set_fault(Fault::Slow(Duration::from_millis(250)));
    // Before it was admitted once, the market is not read either.
    for (path, requests, calls) in [(ME, 10, 10), ("/v1/public/marketplaces", 1, 2)] {
        for round_trips in [2, 1] {
            running.wait(31);
            proxy.take_calls();
            let replies = get_many(&running, &key, path, requests).await;
            assert!(replies.iter().all(|reply| reply.status == 200));
            let made = proxy.take_calls();
            assert_eq!((made.len(), AwsCall::round_trips(&made)), (calls, round_trips), "{path}: {made:?}");
        }
    }
    assert_eq!(running.client.get(&invented(9), "/v1/public/marketplaces").await.status, 401);
    assert_eq!(proxy.take_operations(), ["UpdateItem"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_write_of_one_request_fails_the_next_one_decides() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let mut calls = 0;
    proxy.plan(move |_| {
        calls += 1;
        // A write is tried three times.
        if calls <= 3 { Fault::Error("ThrottlingException") } else { Fault::None }
    });
    let mut statuses: Vec<u16> = get_many(&running, &key, ME, 5).await.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 503]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_works_and_a_revoked_one_does_not_whatever_was_refused_before() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    assert_eq!(running.client.get(&invented(9), ME).await.status, 401);
    let (key, record) = stack.key_of(uuid(1).into(), &[Scope::CatalogRead]).await;
    assert_eq!(running.client.get(&key, ME).await.status, 200, "made a moment ago");
    assert_eq!(running.client.get(&key, LISTINGS).await.status, 403);
    stack.admin.keys().revoke(record.key_id).await.unwrap();
    assert_eq!(running.client.get(&key, ME).await.status, 401, "revoked a moment ago");
    for _ in 0..3 {
        running.wait(1);
        for path in [ME, LISTINGS] {
            assert_eq!(running.client.get(&key, path).await.status, 401, "{path}");
        }
    }
}
