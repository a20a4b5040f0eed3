//! A warm request costs one sequential DynamoDB round trip, on every endpoint.

use std::time::Duration;

use tests::{AwsCall, Fault, Stack, uuid};

use crate::access::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_request_costs_one_round_trip() {
    let stack = Stack::new().await;
    let user = uuid(1);
    stack.feed(&tests::market(user.into())).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let (key, _) = stack.key_of(user.into(), &types::scope::Scope::ALL).await;
    for (path, _) in PATHS {
        assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
    }
    // Calls are slow enough for those sent together to overlap on a busy machine.
    proxy.set_fault(Fault::Slow(Duration::from_millis(250)));
    // After one second replicas follow their log again; after 31 seconds `prices` reads the marketplaces again.
    for pause in [0, 1, 31] {
        running.wait(pause);
        for (path, _) in PATHS {
            proxy.take_calls();
            assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
            let calls = proxy.take_calls();
            let writes = calls.iter().filter(|call| call.operation == "UpdateItem").count();
            assert_eq!((AwsCall::round_trips(&calls), writes), (1, 1), "{path} after {pause} s: {calls:?}");
            assert!(calls.len() <= 3, "{path}: {calls:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_asks_for_changes_once_a_second_at_most() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    running.wait(5);
    proxy.take_calls();
    let queries = |calls: Vec<AwsCall>| calls.iter().filter(|call| call.operation == "Query").count();
    for _ in 0..3 {
        running.client.get(&key, "/v1/public/listings").await;
    }
    assert_eq!(queries(proxy.take_calls()), 1);
    running.clock.advance(Duration::from_millis(999));
    running.client.get(&key, "/v1/public/listings").await;
    assert_eq!(queries(proxy.take_calls()), 0);
    running.clock.advance(Duration::from_millis(1));
    running.client.get(&key, "/v1/public/listings").await;
    assert_eq!(queries(proxy.take_calls()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_key_costs_no_call() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    proxy.take_calls();
    for (path, _) in PATHS {
        assert_eq!(running.client.get("sk_nonsense", path).await.status, 401);
    }
    assert_eq!(proxy.take_calls().len(), 0);
}
