//! Point-in-time recovery and backups, with limits and without.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{PointInTimeRecoverySpecification, Put, TransactWriteItem};
use local::aws::limits::Limits;
use tests::Stack;
use types::timestamp::Timestamp;

use super::{MARKET, client, get, put, row};

async fn keep_journal(client: &Client, table: &str) {
    let on = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build().unwrap();
    let update = client.update_continuous_backups().table_name(table).point_in_time_recovery_specification(on);
    update.send().await.unwrap();
}

/// Puts two rows with texts of this length at once.
async fn put_both(client: &Client, text: usize) {
    let part = |sk: &str| {
        let put = Put::builder().table_name(MARKET).set_item(Some(row("both", sk, text))).build().unwrap();
        TransactWriteItem::builder().put(put).build()
    };
    let write = client.transact_write_items().transact_items(part("a")).transact_items(part("b"));
    write.send().await.unwrap();
}

/// Restores the market table into one with another name.
async fn restore(client: &Client, to: Timestamp, name: &str) -> Result<(), String> {
    let restore = client.restore_table_to_point_in_time().source_table_name(MARKET).target_table_name(name);
    let restored = restore.restore_date_time(DateTime::from_secs(to.seconds())).send().await;
    restored.map(drop).map_err(|error| error.into_service_error().to_string())
}

/// Returns the length of a row's text in a table.
async fn text(client: &Client, table: &str, pk: &str, sk: &str) -> Option<usize> {
    let found = client.get_item().table_name(table).set_key(Some(super::key(pk, sk))).send().await.unwrap();
    found.item.map(|row| row["text"].as_s().unwrap().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_restored_to_a_moment_and_may_lack_rows_of_its_last_transaction() {
    for limits in [None, Some(Limits::unlimited())] {
        let stack = Stack::new().await;
        let client = client(&stack);
        keep_journal(&client, MARKET).await;
        if let Some(limits) = limits {
            stack.aws.limits().set(limits);
        }
        put(&client, "one", "a", 1).await.unwrap();
        put_both(&client, 1).await;
        put_both(&client, 2).await;
        let moment = stack.aws.recovery().moment();
        put(&client, "one", "a", 2).await.unwrap();
        put(&client, "new", "a", 2).await.unwrap();

        restore(&client, moment, "whole").await.unwrap();
        stack.aws.recovery().cut_last_transaction(0b10);
        restore(&client, moment, "cut").await.unwrap();
        for (table, second) in [("whole", 2), ("cut", 1)] {
            assert_eq!(text(&client, table, "one", "a").await, Some(1), "{table}");
            assert_eq!(text(&client, table, "new", "a").await, None, "{table}");
            assert_eq!(text(&client, table, "both", "a").await, Some(2), "{table}");
            assert_eq!(text(&client, table, "both", "b").await, Some(second), "{table}");
        }
        let found = get(&client, "new", "a").await.unwrap();
        assert!(found.item.is_some(), "the table itself stays as it is");

        let origin = client.describe_table().table_name("cut").send().await.unwrap().table.unwrap().restore_summary;
        let origin = origin.unwrap();
        assert_eq!(origin.restore_date_time.secs(), moment.seconds());
        assert!(origin.source_table_arn.unwrap().ends_with(":table/marketplace-market"));
        assert!(restore(&client, moment, "cut").await.is_err(), "the table exists");
        for hours in [-1, 1] {
            let outside = restore(&client, moment.plus_millis(hours * 3_600_000), "outside").await;
            assert!(outside.is_err(), "{hours} h");
        }
    }
}
