//! A DynamoDB and an S3 that take their time and push back, as clients of the AWS SDK see them, and as the service does.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemError;
use aws_sdk_dynamodb::operation::get_item::{GetItemError, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Put, TransactWriteItem};
use bytes::Bytes;
use common::aws::Patience;
use common::resources::{BASE_BUCKET_VARIABLE, CREATED_AT, DELIVERIES_INDEX, ENDPOINT_ID};
use common::scope::Scope;
use common::store::StoreError;
use local::aws::limits::{
    Access, Latency, Limits, ObjectLimits, ObjectReport, Rate, Reason, Refusal, Resource, Throughput, Units,
};
use local::environment::Variables;
use local::simulation::SimulatedInstance;
use replica::objects::Objects;
use tests::{Simulation, get_from};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const MARKET: &str = "marketplace-market";
const KEYS: &str = "marketplace-keys";
const WEBHOOKS: &str = "marketplace-webhooks";
/// How long a transaction takes. It is applied after half of this time.
const TRANSACTION: Duration = Duration::from_secs(8);
/// The length of the texts of rows that were there before a transaction. The texts of the transaction have one letter.
const BEFORE: usize = 7;

/// Starts a stack with these limits. Returns it with a client that takes every refusal as the answer.
async fn limited(limits: Limits) -> (Simulation, Client) {
    let simulation = Simulation::new().await;
    simulation.aws.limits().set(limits);
    let client = simulation.aws.environment().unwrap().dynamodb(Patience::Bulk);
    let config = client.config().to_builder().retry_config(RetryConfig::disabled()).build();
    (simulation, Client::from_conf(config))
}

/// Returns limits that admit this many units once: read and write units of each partition.
fn partitions(read: f64, write: f64) -> Limits {
    let partition = Throughput { read: Rate::once(read), write: Rate::once(write) };
    Limits { partition, ..Limits::unlimited() }
}

fn slow_transactions(seed: u64) -> Limits {
    Limits { transaction_latency: Latency::always(TRANSACTION), seed, ..Limits::unlimited() }
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn key(pk: &str, sk: &str) -> HashMap<String, AttributeValue> {
    HashMap::from([("pk".to_owned(), s(pk)), ("sk".to_owned(), s(sk))])
}

/// Returns a row with a text of this length.
fn row(pk: &str, sk: &str, text: usize) -> HashMap<String, AttributeValue> {
    let mut row = key(pk, sk);
    row.insert("text".to_owned(), s(&"x".repeat(text)));
    row
}

/// Reads a row strongly consistently.
async fn get(client: &Client, pk: &str, sk: &str) -> Result<GetItemOutput, GetItemError> {
    let get = client.get_item().table_name(MARKET).set_key(Some(key(pk, sk))).consistent_read(true);
    get.send().await.map_err(SdkError::into_service_error)
}

async fn put(client: &Client, pk: &str, sk: &str, text: usize) -> Result<(), PutItemError> {
    let put = client.put_item().table_name(MARKET).set_item(Some(row(pk, sk, text)));
    put.send().await.map(drop).map_err(SdkError::into_service_error)
}

/// Makes a transaction that puts a small row with this sort key into each of the partitions.
fn puts(pks: &[&str], sk: &str) -> Vec<TransactWriteItem> {
    let put = |pk: &&str| Put::builder().table_name(MARKET).set_item(Some(row(pk, sk, 1))).build().unwrap();
    pks.iter().map(|pk| TransactWriteItem::builder().put(put(pk)).build()).collect()
}

/// Writes, and returns the codes with which a transaction was cancelled.
async fn write(client: &Client, writes: Vec<TransactWriteItem>) -> Result<(), Vec<String>> {
    let written = client.transact_write_items().set_transact_items(Some(writes)).send().await;
    let Err(error) = written else { return Ok(()) };
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error.into_service_error() else {
        panic!("not cancelled");
    };
    Err(cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap().to_owned()).collect())
}

/// Begins a transaction that puts a row with this sort key into each partition. It is applied when this returns, but
/// not acknowledged.
async fn begin(client: &Client, pks: &'static [&'static str], sk: &'static str) -> JoinHandle<Result<(), Vec<String>>> {
    let client = client.clone();
    let writing = tokio::spawn(async move { write(&client, puts(pks, sk)).await });
    sleep(TRANSACTION.mul_f64(0.75)).await;
    writing
}

#[tokio::test(start_paused = true)]
async fn a_partition_admits_the_units_of_its_bucket_and_others_are_unaffected() {
    let (simulation, client) = limited(partitions(10.0, 5.0)).await;
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
    // Each costs three units, so the second leaves the bucket in debt.
    put(&client, "a", "1", 2_500).await.unwrap();
    put(&client, "a", "1", 2_500).await.unwrap();
    assert_eq!(put(&client, "a", "2", 1).await.unwrap_err().code(), Some("ThrottlingException"));

    let report = simulation.aws.limits().take_report();
    let refusal = |operation: &str, access| Refusal {
        operation: operation.to_owned(),
        resource: Resource { table: MARKET.to_owned(), index: None },
        partition: Some("a".to_owned()),
        access,
        reason: Reason::Partition,
    };
    assert_eq!(report.calls, 15);
    assert_eq!(report.refused, [refusal("GetItem", Access::Read), refusal("PutItem", Access::Write)]);
    assert_eq!(report.units(MARKET, "a"), Units { read: 10.0, write: 6.0 });
    assert_eq!(report.units(MARKET, "b"), Units { read: 1.0, write: 0.0 });
    assert_eq!(simulation.aws.limits().take_report().calls, 0, "a report is taken once");

    simulation.aws.limits().lift();
    assert_eq!(get(&client, "a", "2").await.unwrap().item, None, "a refused write changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_batch_returns_the_keys_that_were_refused() {
    let (simulation, client) = limited(partitions(1.0, 3.0)).await;
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
    assert_eq!(simulation.aws.limits().take_report().refused.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_index_has_partitions_and_a_throughput_of_its_own() {
    let (simulation, client) = limited(partitions(0.0, 2.0)).await;
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
    let report = simulation.aws.limits().take_report();
    let refused = report.refused.last().unwrap();
    assert_eq!((&refused.resource, refused.partition.as_deref()), (&index, Some("one")));
    assert_eq!(report.consumed[&(index, Some("one".to_owned()))], Units { read: 0.0, write: 2.0 });
}

#[tokio::test(start_paused = true)]
async fn a_throttled_transaction_names_the_item_and_writes_nothing() {
    let (simulation, client) = limited(partitions(0.0, 2.0)).await;
    // An item of a transaction costs twice what a single write costs.
    write(&client, puts(&["a"], "1")).await.unwrap();
    let refused = write(&client, puts(&["b", "a", "c"], "2")).await.unwrap_err();
    assert_eq!(refused, ["None", "ThrottlingError", "None"]);
    let report = simulation.aws.limits().take_report();
    assert_eq!(report.total(), Units { read: 0.0, write: 2.0 }, "a refused transaction costs nothing");
    let refused: Vec<_> = report.refused.iter().map(|refusal| refusal.partition.as_deref()).collect();
    assert_eq!(refused, [Some("a")]);

    let again = client.transact_write_items().set_transact_items(Some(puts(&["a"], "1")));
    let sent = common::transaction::send(again).await;
    assert!(matches!(sent, Err(StoreError::Throttled)), "the service would repeat it: {sent:?}");
    simulation.aws.limits().lift();
    assert_eq!(get(&client, "b", "2").await.unwrap().item, None);
}

#[tokio::test(start_paused = true)]
async fn writes_are_refused_until_the_change_of_their_row_shows() {
    let mut seen = BTreeSet::new();
    for seed in 0..8 {
        let (simulation, client) = limited(slow_transactions(seed)).await;
        let writing = begin(&client, &["a", "b"], "1").await;
        let [shown, _] = scan(&client, true).await;
        for pk in ["a", "b"] {
            let refused = put(&client, pk, "1", 5).await.err();
            let is_conflict = matches!(refused, Some(PutItemError::TransactionConflictException(_)));
            assert_eq!(is_conflict, !shown.contains(pk), "{refused:?}");
            put(&client, pk, "2", 5).await.unwrap();
        }
        let conflicts = 2 - shown.len();
        let other = write(&client, puts(&["c", "b"], "1")).await;
        if shown.contains("b") {
            other.unwrap();
        } else {
            assert_eq!(other, Err(vec!["None".to_owned(), "TransactionConflict".to_owned()]));
            assert_eq!(get(&client, "c", "1").await.unwrap().item, None);
        }
        writing.await.unwrap().unwrap();
        put(&client, "a", "1", 5).await.unwrap();
        write(&client, puts(&["c", "b"], "1")).await.unwrap();
        let refused = simulation.aws.limits().take_report().refused_for(Reason::Conflict);
        assert_eq!(refused, conflicts + usize::from(!shown.contains("b")));
        seen.insert(shown.into_iter().collect::<Vec<_>>());
    }
    assert!(seen.len() > 2, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_goes_on_without_its_client_and_can_be_sent_again_once_it_has_ended() {
    let (_simulation, client) = limited(slow_transactions(0)).await;
    let send = || {
        let puts = Some(puts(&["a"], "1"));
        client.transact_write_items().set_transact_items(puts).client_request_token("token").send()
    };
    let first = tokio::spawn(send());
    sleep(TRANSACTION / 4).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let again = send().await.unwrap_err().into_service_error();
    assert!(again.is_transaction_in_progress_exception(), "{again:?}");
    sleep(TRANSACTION).await;
    assert_eq!(get(&client, "a", "1").await.unwrap().item, Some(row("a", "1", 1)));
    send().await.unwrap();
    put(&client, "a", "1", 5).await.unwrap();
}

/// Returns the partitions among rows that show the transaction, and those that show what was before it.
fn split(rows: &[HashMap<String, AttributeValue>]) -> [BTreeSet<String>; 2] {
    let (old, new): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["text"].as_s().unwrap().len() == BEFORE);
    [new, old].map(|rows| rows.into_iter().map(|row| row["pk"].as_s().unwrap().clone()).collect())
}

async fn scan(client: &Client, is_consistent: bool) -> [BTreeSet<String>; 2] {
    split(client.scan().table_name(MARKET).consistent_read(is_consistent).send().await.unwrap().items())
}

#[tokio::test(start_paused = true)]
async fn scans_queries_and_batches_see_any_half_of_a_transaction_and_single_reads_all_of_it() {
    const PARTITIONS: [&str; 4] = ["a", "b", "c", "d"];
    let mut seen = BTreeSet::new();
    for seed in 0..8 {
        let (_simulation, client) = limited(slow_transactions(seed)).await;
        // The transaction changes two rows and adds two.
        for pk in &PARTITIONS[..2] {
            put(&client, pk, "1", BEFORE).await.unwrap();
        }
        let writing = begin(&client, &PARTITIONS, "1").await;
        let [new, old] = scan(&client, true).await;
        let keys = PARTITIONS.map(|pk| key(pk, "1")).to_vec();
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build().unwrap();
        let answer = client.batch_get_item().request_items(MARKET, wanted).send().await.unwrap();
        assert_eq!(split(&answer.responses().unwrap()[MARKET]), [new.clone(), old.clone()], "the same to all");
        assert!(PARTITIONS[..2].iter().all(|pk| old.contains(*pk) != new.contains(*pk)), "{new:?} {old:?}");
        assert!(!PARTITIONS[2..].iter().any(|pk| old.contains(*pk)), "{old:?}");
        for pk in PARTITIONS {
            let query = client.query().table_name(MARKET).key_condition_expression("pk = :pk").consistent_read(true);
            let query = query.expression_attribute_values(":pk", s(pk)).send().await.unwrap();
            assert_eq!(split(query.items())[0].contains(pk), new.contains(pk));
            assert_eq!(usize::try_from(query.count()).unwrap(), query.items().len());
            assert_eq!(get(&client, pk, "1").await.unwrap().item, Some(row(pk, "1", 1)), "GetItem sees all");
        }
        writing.await.unwrap().unwrap();
        let [all, none] = scan(&client, true).await;
        assert_eq!((all.len(), none.len()), (4, 0));
        seen.insert(new.len());
    }
    assert!(seen.iter().any(|shown| (1..4).contains(shown)), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn eventually_consistent_reads_lag_behind_a_transaction_that_was_acknowledged() {
    let lag = Duration::from_hours(1);
    let (simulation, client) = limited(Limits { lag, ..Limits::unlimited() }).await;
    put(&client, "a", "1", BEFORE).await.unwrap();
    write(&client, puts(&["a", "b"], "1")).await.unwrap();
    let [new, old] = scan(&client, false).await;
    assert_eq!((new.len(), old.len()), (0, 1), "the first row as it was, and the second not at all");
    let [new, old] = scan(&client, true).await;
    assert_eq!((new.len(), old.len()), (2, 0));

    simulation.aws.limits().set(Limits::unlimited());
    write(&client, puts(&["c"], "1")).await.unwrap();
    let [new, _] = scan(&client, false).await;
    assert!(new.contains("c"), "without a lag it shows at once: {new:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_takes_its_time_and_a_prefix_that_is_used_up_is_to_be_asked_more_slowly() {
    let simulation = Simulation::new().await;
    let sdk = replica::objects::client(&simulation.aws.environment().unwrap(), Patience::Bulk);
    let bucket = Variables::new("").get(BASE_BUCKET_VARIABLE).unwrap();
    let objects = Objects::new(sdk.clone(), bucket.clone(), Patience::Bulk);
    for key in ["a/1", "b/1"] {
        objects.put(key, Bytes::from(vec![7_u8; 20_000])).await.unwrap();
    }
    let limits = |objects| Limits { objects, ..Limits::unlimited() };
    let once = ObjectLimits { gets: Rate::once(1.0), ..ObjectLimits::UNLIMITED };
    simulation.aws.limits().set(limits(once));
    let config = sdk.config().to_builder().retry_config(aws_sdk_s3::config::retry::RetryConfig::disabled()).build();
    let impatient = replica::objects::Client::from_conf(config);
    for (key, expected) in [("a/1", None), ("a/1", Some((503, "SlowDown"))), ("b/1", None)] {
        let got = impatient.get_object().bucket(&bucket).key(key).send().await;
        let refused = got.as_ref().err().map(|error| {
            let status = error.raw_response().map_or(0, |response| response.status().as_u16());
            (status, error.code().unwrap_or_default())
        });
        assert_eq!(refused, expected, "{key}");
    }
    let report = simulation.aws.limits().take_report();
    let expected = ObjectReport { gets: 2, read_bytes: 40_000, refused: 1, ..ObjectReport::default() };
    assert_eq!((report.objects, report.calls), (expected, 0));

    let refilling = ObjectLimits { gets: Rate { per_second: 100.0, burst: 1.0 }, ..ObjectLimits::UNLIMITED };
    simulation.aws.limits().set(limits(refilling));
    for _ in 0..3 {
        assert_eq!(objects.get("a/1").await.unwrap().unwrap().len(), 20_000, "the SDK asks again after a pause");
    }
    assert!(simulation.aws.limits().take_report().objects.refused > 0);

    let first_byte = Latency::always(Duration::from_millis(15));
    simulation.aws.limits().set(limits(ObjectLimits { first_byte, bytes_per_second: 1e6, ..ObjectLimits::UNLIMITED }));
    let began = simulation.elapsed();
    objects.get("a/1").await.unwrap();
    let took = simulation.since(began).as_millis();
    assert!((35..=38).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_the_latency_of_the_store_and_no_other_time() {
    let simulation = Simulation::new().await;
    let store = simulation.aws.environment().unwrap().dynamodb(Patience::Request);
    for (latency_millis, expected_millis) in [(0, 0..=2), (8, 8..=10), (400, 400..=402)] {
        let latency = Latency::always(Duration::from_millis(latency_millis));
        simulation.aws.limits().set(Limits { latency, ..Limits::unlimited() });
        let began = simulation.elapsed();
        store.get_item().table_name(MARKET).set_key(Some(key("a", "b"))).send().await.unwrap();
        let took = simulation.since(began).as_millis();
        assert!(expected_millis.contains(&took), "{took} ms with a latency of {latency_millis} ms");
    }
}

/// Sends a request, and returns how many calls the store refused because of it.
async fn refused_calls(simulation: &Simulation, instance: &SimulatedInstance, key: &str) -> usize {
    assert_eq!(get_from(instance, key, "/v1/public/listings").await.status, 503);
    simulation.aws.limits().take_report().refused_for(Reason::Table)
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_retries_are_used_up_takes_none_from_another() {
    let simulation = Simulation::new().await;
    let key = simulation.key(&[Scope::ListingsRead]).await;
    let nothing = Throughput { read: Rate::once(0.0), write: Rate::once(0.0) };
    simulation.aws.limits().set(Limits { table: nothing, only_table: Some(KEYS), ..Limits::unlimited() });
    let [one, other] = [(); 2].map(|()| simulation.cold("listings", listings::api));
    let first = refused_calls(&simulation, &one, &key).await;
    let mut last = first;
    for _ in 0..120 {
        last = refused_calls(&simulation, &one, &key).await;
    }
    assert!(last < first, "{last} calls of the last request, {first} of the first");
    assert_eq!(refused_calls(&simulation, &other, &key).await, first);
}
