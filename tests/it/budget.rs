//! The token bucket through HTTP (specification 8.1 to 8.4).
//!
//! Where a key's limit comes from (specification 8.1), and changes of a key at the same moment.
//!
//! How many requests a key made, as its row counts them per UTC day and scope.

use std::time::Duration;

use admin::keys::{AdminError, KeyUpdate, LimitChange, MAX_LIMIT, NewKey};
use api::auth::{KeyStatus, Usage};
use aws_sdk_dynamodb::types::AttributeValue;
use common::scope::{Scope, Tier};
use futures_util::future::join_all;
use tests::{AwsCall, Fault, RunningInstance, Stack, new_key, set_key_attribute, stored_key_row, uuid};

const PATH: &str = "/v1/public/marketplaces";
/// The budget of the keys that these tests use, in requests per minute.
const LIMIT: u32 = Tier::Free.limit();

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_minute_is_refused_for_a_second_without_asking_the_store() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    for _ in 0..=LIMIT {
        running.client.get(&key, PATH).await;
    }
    proxy.take_calls();
    for _ in 0..10 {
        assert_eq!(running.client.get(&key, PATH).await.status, 429);
    }
    assert_eq!(AwsCall::count(&proxy.take_calls(), "UpdateItem"), 0);
    running.wait(1);
    let refused = running.client.get(&key, PATH).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "59"));
    assert_eq!(AwsCall::count(&proxy.take_calls(), "UpdateItem"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_refusal_of_a_spent_minute_is_repeated_in_the_next_one() {
    let stack = Stack::new().await;
    let (running, key) = (stack.instance().await, stack.full_key().await);
    running.clock.advance(Duration::from_millis(59_500));
    for _ in 0..LIMIT {
        running.client.get(&key, PATH).await;
    }
    let refused = running.client.get(&key, PATH).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"));
    running.clock.advance(Duration::from_millis(500));
    assert_eq!(running.client.get(&key, PATH).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_more_than_a_minute_behind_is_fenced_off() {
    let stack = Stack::new().await;
    let (right, behind) = (stack.instance().await, stack.instance_off_by(-120).await);
    let key = stack.full_key().await;
    assert_eq!(right.client.get(&key, PATH).await.status, 200);
    let reply = behind.client.get(&key, PATH).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sparse_use_is_cleaned_up_and_the_item_stays_below_one_kilobyte() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let mut clean_ups = 0;
    for round in 0..40 {
        let paths = ["/v1/public/me", PATH, "/v1/public/listings", "/v1/public/orders", "/v1/public/wallet/balance"];
        proxy.take_calls();
        let path = paths[round % paths.len()];
        assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
        clean_ups += AwsCall::count(&proxy.take_calls(), "UpdateItem") - 1;
        let (counters, bytes) = tests::key_item_size(&stack, &key).await;
        assert!(counters <= 17 && bytes < 1_024, "{counters} counters, {bytes} bytes");
        running.wait(20 * 60);
    }
    assert_eq!(clean_ups, 2, "one request in sixteen cleans up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_conflict_is_retried() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let mut conflicts = 2;
    proxy.plan(move |operation| {
        if operation == "UpdateItem" && conflicts > 0 {
            conflicts -= 1;
            return Fault::Error("TransactionConflictException");
        }
        Fault::None
    });
    let reply = running.client.get(&key, PATH).await;
    assert_eq!((reply.status, reply.rate().1), (200, LIMIT - 1));
}

const ME: &str = "/v1/public/me";
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_not_created_with_a_limit_that_no_change_would_give_it() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    let user_id = tests::uuid(1).into();
    let with_limit = |limit| NewKey { limit_override: Some(limit), ..new_key(user_id, &[Scope::CatalogRead]) };
    let refused = admin.create(with_limit(MAX_LIMIT + 1)).await;
    assert!(matches!(refused, Err(AdminError::Invalid { field: "limit", .. })), "{refused:?}");
    let (_, record) = admin.create(with_limit(MAX_LIMIT)).await.unwrap();
    assert_eq!(record.limit, MAX_LIMIT);
    assert_eq!(admin.list(user_id).await.unwrap().readable, [record]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_key_at_the_same_moment_all_stay() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    let (_, record) = stack.key_of(tests::uuid(1).into(), &[Scope::CatalogRead]).await;
    for (round, tier) in (1..=10).zip([Tier::Pro, Tier::Business].into_iter().cycle()) {
        let name = format!("bot {round}");
        let changes = [
            KeyUpdate { tier: Some(tier), ..KeyUpdate::default() },
            KeyUpdate { limit: Some(LimitChange::Own(round)), ..KeyUpdate::default() },
            KeyUpdate { name: Some(name.clone()), ..KeyUpdate::default() },
        ];
        let changes = changes.map(|change| admin.update(record.key_id, change));
        assert!(join_all(changes).await.iter().all(Result::is_ok));
        let [key] = admin.list(record.user_id).await.unwrap().readable.try_into().unwrap();
        assert_eq!((key.tier, key.limit_override, key.limit, key.name), (tier, Some(round), round, Some(name)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_beside_a_revocation_leaves_the_key_revoked() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    for user in 1..=10 {
        let (_, record) = stack.key_of(tests::uuid(user).into(), &[Scope::CatalogRead]).await;
        let change = KeyUpdate { limit: Some(LimitChange::Own(7)), ..KeyUpdate::default() };
        let (changed, revoked) = tokio::join!(admin.update(record.key_id, change), admin.revoke(record.key_id));
        assert!(matches!(&changed, Ok(_) | Err(AdminError::NotActive(_))), "{changed:?}");
        revoked.unwrap();
        let [key] = admin.list(record.user_id).await.unwrap().readable.try_into().unwrap();
        assert_eq!((key.status, key.limit_override), (KeyStatus::Revoked, changed.ok().map(|_| 7)));
    }
}

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// A path for each scope, in the order of the scopes.
const PATHS: [&str; 4] =
    ["/v1/public/marketplaces", "/v1/public/listings", "/v1/public/orders", "/v1/public/wallet/balance"];

async fn usage(stack: &Stack, key: &str) -> Vec<(String, Scope, u64)> {
    let usage = Usage::from_row(&stored_key_row(stack, key).await).unwrap();
    usage.days.into_iter().map(|used| (used.day, used.scope, used.requests)).collect()
}

fn used(day: &str, scope: Scope, requests: u64) -> (String, Scope, u64) {
    (day.to_owned(), scope, requests)
}

async fn get(running: &RunningInstance, key: &str, path: &str, status: u16) {
    assert_eq!(running.client.get(key, path).await.status, status, "{path}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_per_day_and_scope_by_the_write_that_takes_their_token() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    assert!(usage(&stack, &key).await.is_empty());
    for path in [PATHS[0], PATHS[1], PATHS[0], ME] {
        get(&running, &key, path, 200).await;
    }
    running.wait(DAY_SECONDS / 2 - 1);
    get(&running, &key, PATHS[0], 200).await;
    running.wait(1);
    proxy.take_calls();
    get(&running, &key, PATHS[3], 200).await;
    assert_eq!(AwsCall::count(&proxy.take_calls(), "UpdateItem"), 1);
    let expected = [
        used("2026-11-21", Scope::WalletRead, 1),
        used("2026-11-20", Scope::CatalogRead, 3),
        used("2026-11-20", Scope::ListingsRead, 1),
    ];
    assert_eq!(usage(&stack, &key).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_no_token_is_not_counted_and_a_lost_answer_counts_once() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.key(&[Scope::CatalogRead]).await;
    tests::set_limit(&stack, &key, 2).await;
    let mut is_first = true;
    proxy.plan(move |operation| {
        let lose = operation == "UpdateItem" && std::mem::take(&mut is_first);
        if lose { Fault::LoseAnswer } else { Fault::None }
    });
    for (path, status) in [(PATHS[0], 200), (PATHS[1], 403), (PATHS[0], 200), (PATHS[0], 429), (PATHS[0], 429)] {
        get(&running, &key, path, status).await;
    }
    assert_eq!(usage(&stack, &key).await, [used("2026-11-20", Scope::CatalogRead, 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_seven_days_are_kept_and_the_row_stays_below_one_kilobyte() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let name = Some("n".repeat(128));
    let new = NewKey { name, tier: Tier::Business, ..new_key(uuid(1).into(), &Scope::ALL) };
    let (key, _) = stack.key_with(new).await;
    // As in the row of a key that a rotation made.
    set_key_attribute(&stack, &key, "replaces", AttributeValue::S("0".repeat(64))).await;
    for day in 0..10 {
        for path in PATHS {
            get(&running, &key, path, 200).await;
        }
        get(&running, &key, ME, 200).await;
        // The most that this tier can make in a day.
        let most = AttributeValue::N((24 * 60 * Tier::Business.limit()).to_string());
        for (name, value) in stored_key_row(&stack, &key).await {
            if name.starts_with(char::is_uppercase) && value == AttributeValue::N("1".to_owned()) {
                set_key_attribute(&stack, &key, &name, most.clone()).await;
            }
        }
        assert_eq!(usage(&stack, &key).await.len(), PATHS.len() * (day + 1).min(7), "on day {day}");
        let (_, bytes) = tests::key_item_size(&stack, &key).await;
        assert!(bytes < 1_024, "{bytes} bytes on day {day}");
        running.wait(DAY_SECONDS);
    }
    // What no write removes by name is removed by a clean-up.
    running.wait(30 * DAY_SECONDS);
    get(&running, &key, PATHS[0], 200).await;
    assert_eq!(usage(&stack, &key).await, [used("2026-12-30", Scope::CatalogRead, 1)]);
}
