//! Units by partition, table and index, and the refusals of single calls and of batches.
//!
//! The service on a DynamoDB that pushes back.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemError;
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use local::aws::limits::{Access, Limits, Rate, Reason, Refusal, Resource, Throughput, Units};
use platform::resources::{CREATED_AT, DELIVERIES_INDEX, ENDPOINT_ID};
use tests::{PATHS, Stack, uuid};
use types::scope::Scope;

use super::{MARKET, client, get, key, partitions, put, row, s};

const WEBHOOKS: &str = "marketplace-webhooks";

fn market() -> Resource {
    Resource { table: MARKET.to_owned(), index: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_admits_the_units_of_its_bucket_and_others_are_unaffected() {
    let stack = Stack::with_limits(partitions(10.0, 0.0)).await;
    let client = client(&stack);
    for _ in 0..10 {
        get(&client, "a", "1").await.unwrap();
    }
    let GetItemError::ThrottlingException(refused) = get(&client, "a", "2").await.unwrap_err() else {
        panic!("another error");
    };
    let reason = &refused.throttling_reasons()[0];
    assert_eq!(reason.reason(), Some("TableReadKeyRangeThroughputExceeded"));
    assert_eq!(reason.resource(), Some("arn:aws:dynamodb:us-east-1:000000000000:table/marketplace-market"));
    get(&client, "b", "1").await.unwrap();

    let report = stack.aws.limits().take_report();
    let refusal = Refusal {
        operation: "GetItem".to_owned(),
        resource: market(),
        partition: Some("a".to_owned()),
        access: Access::Read,
        reason: Reason::Partition,
    };
    assert_eq!(report.calls, 12);
    assert_eq!(report.refused, [refusal]);
    assert_eq!(report.units(MARKET, "a"), Units { read: 10.0, write: 0.0 });
    assert_eq!(report.units(MARKET, "b"), Units { read: 1.0, write: 0.0 });
    assert_eq!(stack.aws.limits().take_report().calls, 0, "a report is taken once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_call_that_a_bucket_admits_may_leave_it_in_debt() {
    let stack = Stack::with_limits(partitions(0.0, 5.0)).await;
    let client = client(&stack);
    // Each costs three units.
    put(&client, "a", "1", 2_500).await.unwrap();
    put(&client, "a", "1", 2_500).await.unwrap();
    assert_eq!(put(&client, "a", "2", 1).await.unwrap_err().code(), Some("ThrottlingException"));
    let report = stack.aws.limits().take_report();
    assert_eq!(report.units(MARKET, "a"), Units { read: 0.0, write: 6.0 });
    assert_eq!(report.refused.len(), 1);

    stack.aws.limits().lift();
    let stored = get(&client, "a", "2").await.unwrap();
    assert_eq!(stored.item, None, "a refused write changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_condition_costs_the_size_of_the_stored_row() {
    let stack = Stack::with_limits(Limits::unlimited()).await;
    let client = client(&stack);
    put(&client, "a", "1", 2_500).await.unwrap();
    stack.aws.limits().take_report();
    let put = client.put_item().table_name(MARKET).set_item(Some(row("a", "1", 9_000)));
    let failed = put.condition_expression("attribute_not_exists(pk)").send().await.unwrap_err();
    assert_eq!(failed.code(), Some("ConditionalCheckFailedException"));
    assert_eq!(stack.aws.limits().take_report().units(MARKET, "a"), Units { read: 0.0, write: 3.0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_pays_for_what_it_returns_and_half_if_it_may_be_stale() {
    let stack = Stack::with_limits(Limits::unlimited()).await;
    let client = client(&stack);
    for sk in ["1", "2", "3"] {
        put(&client, "a", sk, 4_000).await.unwrap();
    }
    stack.aws.limits().take_report();
    for (is_consistent, read) in [(true, 3.0), (false, 1.5)] {
        let query = client.query().table_name(MARKET).key_condition_expression("#pk = :pk AND #sk >= :from");
        let query = query.expression_attribute_names("#pk", "pk").expression_attribute_names("#sk", "sk");
        let query = query.expression_attribute_values(":pk", s("a")).expression_attribute_values(":from", s("1"));
        assert_eq!(query.consistent_read(is_consistent).send().await.unwrap().count(), 3);
        assert_eq!(stack.aws.limits().take_report().units(MARKET, "a"), Units { read, write: 0.0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_uses_the_tables_bucket() {
    let table = Throughput { read: Rate::once(1.0), write: Rate::UNLIMITED };
    let stack = Stack::with_limits(Limits { table, ..Limits::unlimited() }).await;
    let client = client(&stack);
    put(&client, "a", "1", 1).await.unwrap();
    let scan = || client.scan().table_name(MARKET).consistent_read(true).send();
    assert_eq!(scan().await.unwrap().count(), 1);
    assert_eq!(scan().await.unwrap_err().code(), Some("ThrottlingException"));
    assert_eq!(get(&client, "b", "1").await.unwrap_err().code(), Some("ThrottlingException"));
    let refused = stack.aws.limits().take_report().refused;
    let refused: Vec<_> = refused.iter().map(|refusal| (refusal.partition.as_deref(), refusal.reason)).collect();
    assert_eq!(refused, [(None, Reason::Table), (Some("b"), Reason::Table)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_returns_the_keys_that_were_refused() {
    let stack = Stack::with_limits(partitions(1.0, 3.0)).await;
    let client = client(&stack);
    for (pk, sk) in [("a", "1"), ("a", "2"), ("b", "1")] {
        put(&client, pk, sk, 1).await.unwrap();
    }
    let batch = |keys: Vec<HashMap<String, AttributeValue>>| {
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build().unwrap();
        client.batch_get_item().request_items(MARKET, wanted).send()
    };
    let answer = batch(vec![key("a", "1"), key("a", "2"), key("b", "1")]).await.unwrap();
    assert_eq!(answer.responses().unwrap()[MARKET].len(), 2);
    let left = &answer.unprocessed_keys().unwrap()[MARKET];
    assert_eq!((left.keys(), left.consistent_read()), (&[key("a", "2")][..], Some(true)));

    let refused = batch(left.keys().to_vec()).await.unwrap_err().into_service_error();
    assert!(matches!(refused, BatchGetItemError::ThrottlingException(_)), "{refused:?}");
    assert_eq!(stack.aws.limits().take_report().refused.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_has_partitions_and_a_throughput_of_its_own() {
    let stack = Stack::with_limits(partitions(0.0, 2.0)).await;
    let client = client(&stack);
    let index = Resource { table: WEBHOOKS.to_owned(), index: Some(DELIVERIES_INDEX.to_owned()) };
    let put = |number: u32, endpoint: &str| {
        let mut row = key(&format!("delivery#{number}"), "delivery");
        row.insert(ENDPOINT_ID.to_owned(), s(endpoint));
        row.insert(CREATED_AT.to_owned(), AttributeValue::N(number.to_string()));
        client.put_item().table_name(WEBHOOKS).set_item(Some(row)).send()
    };
    put(1, "one").await.unwrap();
    put(2, "one").await.unwrap();
    // Nothing that an index holds changes, so only the table pays.
    put(2, "one").await.unwrap();
    put(3, "two").await.unwrap();
    assert_eq!(put(4, "one").await.unwrap_err().code(), Some("ThrottlingException"));
    let report = stack.aws.limits().take_report();
    let refused = report.refused.last().unwrap();
    assert_eq!((&refused.resource, refused.partition.as_deref()), (&index, Some("one")));
    assert_eq!(report.consumed[&(index, Some("one".to_owned()))], Units { read: 0.0, write: 2.0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_aws_refuse_nothing_that_one_caller_does() {
    let stack = Stack::with_limits(Limits::aws()).await;
    let user = uuid(1).into();
    stack.feed(&tests::market(user)).await;
    let running = stack.instance().await;
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    for (path, _) in PATHS.iter() {
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
