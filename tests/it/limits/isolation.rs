//! Reads beside a transaction. Queries, scans and batches may see half of it.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use local::aws::limits::Limits;
use tests::Stack;

use super::{MARKET, begin, client, end, get, key, put, puts, row, s, write};

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
