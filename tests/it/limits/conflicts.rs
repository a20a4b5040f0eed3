//! Calls that meet a transaction which is under way.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use local::aws::limits::{Limits, Reason};
use tests::Stack;

use super::{MARKET, begin, client, end, get, put, puts, read, s, write};

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
