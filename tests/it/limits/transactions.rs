//! Transactions that are throttled.
//!
//! Calls that meet a transaction which is under way.
//!
//! Reads beside a transaction. Queries, scans and batches may see half of it.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Put, TransactWriteItem};
use local::aws::limits::{Limits, Reason, Units};
use platform::store::StoreError;
use tests::Stack;

use super::{MARKET, begin, client, end, get, key, partitions, put, puts, read, row, s, write};

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_transaction_names_the_item_and_writes_nothing() {
    let stack = Stack::with_limits(partitions(0.0, 2.0)).await;
    let client = client(&stack);
    // An item of a transaction costs twice what a single write costs.
    write(&client, puts(&["a"], "1")).await.unwrap();
    let refused = write(&client, puts(&["b", "a", "c"], "2")).await.unwrap_err();
    assert_eq!(refused, ["None", "ThrottlingError", "None"]);

    let report = stack.aws.limits().take_report();
    assert_eq!(report.units(MARKET, "a"), Units { read: 0.0, write: 2.0 });
    assert_eq!(report.total(), Units { read: 0.0, write: 2.0 }, "a refused transaction costs nothing");
    let refused: Vec<_> = report.refused.iter().map(|refusal| refusal.partition.as_deref()).collect();
    assert_eq!(refused, [Some("a")]);
    stack.aws.limits().lift();
    assert_eq!(get(&client, "b", "2").await.unwrap().item, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_takes_a_throttled_transaction_for_one_to_repeat() {
    let stack = Stack::with_limits(partitions(0.0, 0.0)).await;
    let request = client(&stack).transact_write_items().set_transact_items(Some(puts(&["a"], "1")));
    let sent = platform::transaction::send(request).await;
    assert!(matches!(sent, Err(StoreError::Conflict)), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_transaction_is_throttled_like_a_writing_one() {
    let stack = Stack::with_limits(partitions(2.0, 0.0)).await;
    let client = client(&stack);
    read(&client, &["a"], "1").await.unwrap();
    let refused = read(&client, &["b", "a"], "1").await.unwrap_err();
    assert_eq!(refused, ["None", "ThrottlingError"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_costs_twice_the_size_of_its_rows() {
    let stack = Stack::with_limits(Limits::unlimited()).await;
    let client = client(&stack);
    let put = Put::builder().table_name(MARKET).set_item(Some(row("a", "1", 2_500))).build().unwrap();
    let mut writes = puts(&["b"], "1");
    writes.push(TransactWriteItem::builder().put(put).build());
    write(&client, writes).await.unwrap();
    let report = stack.aws.limits().take_report();
    assert_eq!(report.units(MARKET, "a"), Units { read: 0.0, write: 6.0 });
    assert_eq!(report.units(MARKET, "b"), Units { read: 0.0, write: 2.0 });
}

async fn stack_and_client() -> (Stack, Client) {
    let stack = Stack::with_limits(Limits::unlimited()).await;
    let client = client(&stack);
    (stack, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_of_two_transactions_that_share_a_row_is_cancelled() {
    let (stack, client) = stack_and_client().await;
    let first = begin(&stack, &["a", "b"], "1").await;
    let second = write(&client, puts(&["c", "b"], "1")).await.unwrap_err();
    assert_eq!(second, ["None", "TransactionConflict"]);
    assert_eq!(get(&client, "c", "1").await.unwrap().item, None);
    let reading = read(&client, &["c", "a"], "1").await.unwrap_err();
    assert_eq!(reading, ["None", "TransactionConflict"]);
    end(&stack, first).await;

    write(&client, puts(&["c", "b"], "1")).await.unwrap();
    read(&client, &["c", "a"], "1").await.unwrap();
    assert_eq!(stack.aws.limits().take_report().refused_for(Reason::Conflict), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_write_is_refused_while_a_transaction_holds_its_row() {
    let (stack, client) = stack_and_client().await;
    let writing = begin(&stack, &["a"], "1").await;
    let refused = put(&client, "a", "1", 5).await.unwrap_err();
    assert!(matches!(refused, PutItemError::TransactionConflictException(_)), "{refused:?}");
    put(&client, "a", "2", 5).await.unwrap();
    end(&stack, writing).await;
    put(&client, "a", "1", 5).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_different_rows_do_not_meet() {
    let (stack, client) = stack_and_client().await;
    let first = begin(&stack, &["a"], "1").await;
    let second = tokio::spawn(async move { write(&client, puts(&["a", "b"], "2")).await });
    stack.aws.limits().wait_until_held(2).await;
    end(&stack, first).await;
    second.await.unwrap().unwrap();
    assert_eq!(stack.aws.limits().take_report().refused, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_sent_again_while_it_is_under_way_is_told_so() {
    let (stack, client) = stack_and_client().await;
    let send = || {
        let puts = Some(puts(&["a"], "1"));
        client.transact_write_items().set_transact_items(puts).client_request_token("token").send()
    };
    stack.aws.limits().hold_transactions();
    let first = tokio::spawn(send());
    stack.aws.limits().wait_until_held(1).await;
    let again = send().await.unwrap_err().into_service_error();
    assert!(again.is_transaction_in_progress_exception(), "{again:?}");
    stack.aws.limits().release_transactions();
    first.await.unwrap().unwrap();
    send().await.unwrap();
    let stored = client.query().table_name(MARKET).key_condition_expression("pk = :pk");
    let stored = stored.expression_attribute_values(":pk", s("a")).send().await.unwrap();
    assert_eq!(stored.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_gives_its_rows_back_even_if_its_client_hangs_up() {
    let (stack, client) = stack_and_client().await;
    let writing = begin(&stack, &["a"], "1").await;
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    put(&client, "a", "1", 5).await.unwrap_err();
    stack.aws.limits().release_transactions();
    while put(&client, "a", "1", 5).await.is_err() {}
}

const PARTITIONS: [&str; 4] = ["a", "b", "c", "d"];
/// The length of the texts that were there before the transaction.
const BEFORE: usize = 7;

/// Returns the partitions among rows that show the transaction, and those that show what was before it.
fn split(rows: &[std::collections::HashMap<String, AttributeValue>]) -> [BTreeSet<String>; 2] {
    let (old, new): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["text"].as_s().unwrap().len() == BEFORE);
    [new, old].map(|rows| rows.into_iter().map(|row| row["pk"].as_s().unwrap().clone()).collect())
}

async fn scan(client: &Client) -> [BTreeSet<String>; 2] {
    split(client.scan().table_name(MARKET).consistent_read(true).send().await.unwrap().items())
}

async fn batch(client: &Client) -> [BTreeSet<String>; 2] {
    let keys = PARTITIONS.map(|pk| key(pk, "1")).to_vec();
    let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build().unwrap();
    let answer = client.batch_get_item().request_items(MARKET, wanted).send().await.unwrap();
    split(&answer.responses().unwrap()[MARKET])
}

/// Returns a stack with rows in these partitions, and with everything random drawn from this seed.
async fn stack(seed: u64, partitions: &[&str]) -> (Stack, Client) {
    let stack = Stack::with_limits(Limits { seed, ..Limits::unlimited() }).await;
    let client = client(&stack);
    for pk in partitions {
        put(&client, pk, "1", BEFORE).await.unwrap();
    }
    (stack, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_and_batches_see_any_half_of_a_transaction_and_single_reads_all_of_it() {
    let mut seen = BTreeSet::new();
    for seed in 0..8 {
        // The transaction changes two rows and adds two.
        let (stack, client) = stack(seed, &PARTITIONS[..2]).await;
        let writing = begin(&stack, &PARTITIONS, "1").await;
        let [new, old] = scan(&client).await;
        assert_eq!(batch(&client).await, [new.clone(), old.clone()], "a row shows the same to all");
        assert!(new.is_disjoint(&old));
        let hidden = |pk: &&str| old.contains(*pk);
        assert!(PARTITIONS[..2].iter().all(|pk| hidden(pk) != new.contains(*pk)), "{new:?} {old:?}");
        assert!(!PARTITIONS[2..].iter().any(hidden), "{old:?}");
        for pk in PARTITIONS {
            let item = get(&client, pk, "1").await.unwrap().item.unwrap();
            assert_eq!(item, row(pk, "1", 1), "GetItem sees the transaction");
        }
        end(&stack, writing).await;
        let [all, none] = scan(&client).await;
        assert_eq!((all.len(), none.len()), (4, 0));
        seen.insert(new.len());
    }
    assert!(seen.iter().any(|shown| (1..4).contains(shown)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_may_see_half_of_a_transaction() {
    let mut seen = BTreeSet::new();
    for seed in 0..8 {
        let (stack, client) = stack(seed, &[]).await;
        stack.aws.limits().hold_transactions();
        let writing = tokio::spawn({
            let client = client.clone();
            async move {
                let writes = ["1", "2", "3", "4"].iter().flat_map(|sk| puts(&["a"], sk)).collect();
                write(&client, writes).await
            }
        });
        stack.aws.limits().wait_until_held(1).await;
        let query = || {
            let query = client.query().table_name(MARKET).key_condition_expression("pk = :pk").consistent_read(true);
            query.expression_attribute_values(":pk", s("a")).send()
        };
        let half = query().await.unwrap();
        assert_eq!(usize::try_from(half.count()).unwrap(), half.items().len());
        assert_eq!(query().await.unwrap().items(), half.items(), "what shows, stays");
        seen.insert(half.count());
        end(&stack, writing).await;
        assert_eq!(query().await.unwrap().count(), 4);
    }
    assert!(seen.iter().any(|shown| (1..4).contains(shown)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_shows_the_same_half() {
    let mut halves = Vec::new();
    for _ in 0..2 {
        let (stack, client) = stack(5, &PARTITIONS[..2]).await;
        let writing = begin(&stack, &PARTITIONS, "1").await;
        halves.push(scan(&client).await);
        end(&stack, writing).await;
    }
    assert_eq!(halves[0], halves[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn eventually_consistent_reads_lag_behind_a_transaction_that_was_acknowledged() {
    let lag = Duration::from_hours(1);
    let stack = Stack::with_limits(Limits { lag, ..Limits::unlimited() }).await;
    let client = client(&stack);
    put(&client, "a", "1", BEFORE).await.unwrap();
    write(&client, puts(&["a", "b"], "1")).await.unwrap();
    let read = async |is_consistent: bool| {
        split(client.scan().table_name(MARKET).consistent_read(is_consistent).send().await.unwrap().items())
    };
    let [new, old] = read(false).await;
    assert_eq!((new.len(), old.len()), (0, 1), "the first row as it was, and the second not at all");
    let [new, old] = read(true).await;
    assert_eq!((new.len(), old.len()), (2, 0));

    stack.aws.limits().set(Limits::unlimited());
    write(&client, puts(&["c"], "1")).await.unwrap();
    let [new, _] = read(false).await;
    assert!(new.contains("c"), "without a lag it shows at once: {new:?}");
}
