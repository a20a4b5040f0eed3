//! The service on a DynamoDB that pushes back.

use local::aws::limits::{Limits, Rate, Throughput, Units};
use tests::{Stack, uuid};
use types::scope::Scope;

use crate::access::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_aws_refuse_nothing_that_one_caller_does() {
    let stack = Stack::with_limits(Limits::aws()).await;
    let user = uuid(1).into();
    stack.feed(&tests::market(user)).await;
    let running = stack.instance().await;
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    for (path, _) in PATHS {
        assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
    }
    let report = stack.aws.limits().take_report();
    assert_eq!(report.refused, []);
    let Units { read, write } = report.total();
    assert!(read > 0.0 && write > 0.0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_key_is_answered_by_503_until_the_limits_are_lifted() {
    let stack = Stack::new().await;
    let (running, key) = (stack.instance().await, stack.full_key().await);
    let nothing = Throughput { read: Rate::once(0.0), write: Rate::once(0.0) };
    stack.aws.limits().set(Limits { table: nothing, ..Limits::unlimited() });
    let reply = running.client.get(&key, "/v1/public/me").await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    let report = stack.aws.limits().take_report();
    assert!(!report.refused.is_empty());
    assert_eq!(report.total(), Units::default());

    stack.aws.limits().lift();
    assert_eq!(running.client.get(&key, "/v1/public/me").await.status, 200);
    assert_eq!(stack.aws.limits().take_report().calls, 0, "without limits nothing is counted");
}
