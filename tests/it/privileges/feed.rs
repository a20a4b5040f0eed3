//! Messages of every type that are applied, refused and postponed, and events that go to every lane.

use local::workers::INGEST_INSTANCES;
use tests::{Fault, Receiver, Stack, balance, market, order, sale, uuid};
use types::ids::UserId;

use super::Used;

/// More than the instances of `ingest` let into the first lane within a second. The rest go to the retry lane.
const SALES: u128 = 10 * INGEST_INSTANCES as u128 + 1;

pub(super) async fn applied() -> Used {
    let (stack, receiver) = (Stack::new().await, Receiver::answering(204).await);
    let users: [UserId; 2] = [uuid(5).into(), uuid(6).into()];
    stack.prove(&stack.endpoint(users[0], &receiver.url).await.0).await;
    // The first delivery of a new endpoint waits for the drain of its account, which the slow lane calls.
    stack.endpoint(users[1], &receiver.url).await;
    // With 128 orders the month is busy: the next order reads the month and cuts it into blocks.
    let orders: Vec<_> = (100..228).map(|number| order(users[0], number, "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&orders).await;

    let queue = stack.feed_queue();
    let (_workers, proxy) = stack.workers_behind_proxy().await;
    let sales = (1..=SALES).map(|event| sale(event, users[0])).chain([sale(SALES + 1, users[1])]);
    let messages = market(users[0]).into_iter().chain(sales);
    queue.send(&messages.map(|message| message.to_string()).chain(["{}".to_owned()]).collect::<Vec<_>>()).await;
    receiver.received(usize::try_from(SALES).unwrap() + 1).await;
    queue.wait_until_empty().await;

    let mut postponed = false;
    proxy.plan(move |operation| {
        postponed |= operation == "SendMessageBatch";
        if operation == "PutItem" && !postponed { Fault::Refuse } else { Fault::None }
    });
    queue.send(&[balance(users[0], "1.00", "2.00", "3.00", 2).to_string()]).await;
    queue.wait_until_empty().await;
    stack.ledger.used()
}
