//! Several writers of one stream: what a moved head costs, and how they share the stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use feed::{Applier, ApplyOutcome, parse};
use local::environment::Variables;
use local::seed::StackAdmin;
use serde_json::Value;
use tests::{Fault, Proxy, Stack, listing};
use types::clock::Clock;

/// The batches that both writers commit together.
const BATCHES: usize = 300;

/// Applies one message, and asserts that it changes something.
async fn apply(stack: &Stack, applier: &mut Applier, message: &Value) {
    let now = stack.clock.now();
    let outcomes = applier.apply(vec![((), parse(&message.to_string(), now).unwrap())], now).await;
    assert!(matches!(outcomes.as_slice(), [((), Ok(ApplyOutcome::Changed))]), "{outcomes:?}");
}

fn new_listing(number: u32) -> Value {
    listing(number, "1.00", "2026-11-20T10:00:00Z", 1)
}

fn applier_through(proxy: &Proxy, stack: &Stack) -> Applier {
    Applier::new(StackAdmin::new(&Variables::new(&proxy.url), stack.clock.clone()).unwrap().stores())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_where_the_head_has_moved() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut writer = applier_through(&proxy, &stack);
    apply(&stack, &mut writer, &new_listing(1)).await;
    stack.feed(&[new_listing(2)]).await;
    stack.feed(&[new_listing(3)]).await;
    proxy.take_calls();
    apply(&stack, &mut writer, &new_listing(4)).await;
    assert_eq!(proxy.take_operations(), ["TransactWriteItems", "TransactWriteItems"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_conflict_the_head_is_not_read_again() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut writer = applier_through(&proxy, &stack);
    apply(&stack, &mut writer, &new_listing(1)).await;
    proxy.take_calls();
    let mut conflicts = 2;
    proxy.plan(move |_| {
        conflicts -= 1;
        if conflicts >= 0 { Fault::Cancelled("TransactionConflict") } else { Fault::None }
    });
    apply(&stack, &mut writer, &new_listing(2)).await;
    // The other transactions did not move the head after all, so the third call is refused, and says where it is.
    assert_eq!(proxy.take_operations(), ["TransactWriteItems"; 4]);
}

/// Commits one batch after the other until both writers together have committed all. Returns how many it committed.
async fn write(stack: &Stack, first: u32, begun: &AtomicUsize) -> usize {
    let mut applier = Applier::new(stack.admin.stores());
    for number in first.. {
        if begun.fetch_add(1, Ordering::SeqCst) >= BATCHES {
            return (number - first) as usize;
        }
        apply(stack, &mut applier, &new_listing(number)).await;
    }
    unreachable!("numbers do not end")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_share_a_stream() {
    let stack = Stack::new().await;
    // With round trips that take time, who has just won would always win again.
    stack.aws.delay_store(Duration::from_millis(5));
    let begun = AtomicUsize::new(0);
    let (one, other) = tokio::join!(write(&stack, 1, &begun), write(&stack, 100_000, &begun));
    assert_eq!(one + other, BATCHES);
    assert!(one.min(other) >= BATCHES / 5, "{one} and {other}");
    tests::assert_the_log_tells_all(&stack).await;
}
