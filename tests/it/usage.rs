//! How many requests a key made, as its row counts them per UTC day and scope.

use admin::keys::NewKey;
use auth::Usage;
use aws_sdk_dynamodb::types::AttributeValue;
use tests::{Fault, RunningInstance, Stack, set_key_attribute, stored_key_row, uuid};
use types::scope::{Scope, Tier};

const DAY_SECONDS: u64 = 24 * 60 * 60;
const ME: &str = "/v1/public/me";
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
    let writes = proxy.take_calls().iter().filter(|call| call.operation == "UpdateItem").count();
    assert_eq!(writes, 1);
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
    let new = NewKey {
        user_id: uuid(1).into(),
        name: Some("n".repeat(128)),
        tier: Tier::Business,
        limit_override: None,
        scopes: Scope::ALL.into(),
        expires_at: None,
    };
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
