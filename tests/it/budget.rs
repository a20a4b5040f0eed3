//! The token bucket through HTTP (specification 8.1 to 8.4).

use futures_util::{StreamExt, stream};
use serde_json::json;
use tests::{Fault, Stack};
use types::scope::Tier;

const PATH: &str = "/v1/public/marketplaces";
/// The budget of the keys that these tests use, in requests per minute.
const LIMIT: u32 = Tier::Free.limit();
/// How many requests are under way at a time. If all were, a slow machine would answer some with 503.
const CONCURRENT_REQUESTS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_over_two_instances_is_admitted_exactly_up_to_the_limit() {
    let stack = Stack::new().await;
    let (one, other) = (stack.instance().await, stack.instance().await);
    let key = stack.full_key().await;
    let requests =
        (0..3 * LIMIT).map(|n| if n % 2 == 0 { &one } else { &other }).map(|running| running.client.get(&key, PATH));
    let replies = stream::iter(requests).buffered(CONCURRENT_REQUESTS).collect::<Vec<_>>().await;
    let mut remaining: Vec<u32> = replies.iter().filter(|r| r.status == 200).map(|r| r.rate().1).collect();
    remaining.sort_unstable();
    assert_eq!(remaining, (0..LIMIT).collect::<Vec<_>>());
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!((refused.status, refused.rate()), (429, (LIMIT, 0, 60)));
        assert_eq!(refused.header("retry-after"), "60");
        assert_eq!(refused.header("cache-control"), "no-store");
        let params = json!({"scope": "catalog:read", "limit": LIMIT, "retry_after": 60});
        assert_eq!(refused.json(), json!({"error": {"code": "rate_limits.exceeded", "params": params}}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_thirty_seconds_off_admits_no_more_than_the_limit_in_any_minute() {
    for offset in [-30, 30] {
        let stack = Stack::new().await;
        let (right, wrong) = (stack.instance().await, stack.instance_off_by(offset).await);
        let key = stack.full_key().await;
        // Answers by the right clock show a reset of 60. Those by the wrong clock show 30, whichever way it is wrong.
        let requests =
            (0..4 * LIMIT).map(|n| if n % 2 == 0 { &right } else { &wrong }).map(|r| r.client.get(&key, PATH));
        let replies = stream::iter(requests).buffered(CONCURRENT_REQUESTS).collect::<Vec<_>>().await;
        let limit = usize::try_from(LIMIT).unwrap();
        let admitted = |reset| replies.iter().filter(|r| r.status == 200 && r.rate().2 == reset).count();
        let [by_right, by_wrong] = [60, 30].map(admitted);
        if offset < 0 {
            assert_eq!([by_right, by_wrong], [limit, limit], "the two clocks name different minutes");
        } else {
            assert_eq!(by_right + by_wrong, limit, "both clocks name the same minute");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_full_again_at_the_next_utc_minute() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    running.wait(59);
    for _ in 0..=LIMIT {
        running.client.get(&key, PATH).await;
    }
    let refused = running.client.get(&key, PATH).await;
    assert_eq!((refused.status, refused.rate(), refused.header("retry-after")), (429, (LIMIT, 0, 1), "1"));
    running.wait(1);
    assert_eq!(running.client.get(&key, PATH).await.rate(), (LIMIT, LIMIT - 1, 60));
}

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
    let writes = |calls: Vec<tests::AwsCall>| calls.iter().filter(|call| call.operation == "UpdateItem").count();
    assert_eq!(writes(proxy.take_calls()), 0);
    running.wait(1);
    let refused = running.client.get(&key, PATH).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "59"));
    assert_eq!(writes(proxy.take_calls()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_not_counted_twice() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    for left in (0..LIMIT).rev() {
        let mut first = true;
        proxy.plan(move |operation| {
            let lose = operation == "UpdateItem" && std::mem::take(&mut first);
            if lose { Fault::LoseAnswer } else { Fault::None }
        });
        let reply = running.client.get(&key, PATH).await;
        assert_eq!((reply.status, reply.rate().1), (200, left));
    }
    proxy.set_fault(Fault::None);
    assert_eq!(running.client.get(&key, PATH).await.status, 429);
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
        let calls = proxy.take_calls();
        clean_ups += calls.iter().filter(|call| call.operation == "UpdateItem").count() - 1;
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
