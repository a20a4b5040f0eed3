//! The table of public data.

use common::resources::Queue;
use std::sync::atomic::{AtomicBool, Ordering};

use common::records::PublicListing;
use futures_util::future::join_all;
use tests::{Stack, compaction, listing, sold_listing};

use super::{AT, assert_settings, deploy_settings, feed_is_on, restore};
use crate::repair::streams::{Listings, Reader, TABLE, assert_right, entities, shown};

/// Reads until the restore is done. Each listing must be as in one of these states.
async fn read_until(is_done: &AtomicBool, stack: &Stack, warm: &Reader, states: &[Listings]) {
    while !is_done.load(Ordering::Acquire) {
        warm.wait();
        for (id, price) in shown(stack, warm).await.into_iter().flatten() {
            let is_known = states.iter().any(|state| state.get(&id) == Some(&price));
            assert!(is_known, "{id} costs {price} during the restore");
        }
    }
}

/// Restores a table whose last transaction lacks these rows.
async fn restored(undone_rows: u64) {
    let (stack, what) = (Stack::new().await, format!("rows {undone_rows:05b} old"));
    let _workers = stack.workers().await;
    deploy_settings(&stack, TABLE).await;
    stack.feed(&[1, 2, 3].map(|number| listing(number, "1.00", AT, 1))).await;
    compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
    let before = entities(&stack).await;
    stack.feed(&[listing(1, "2.00", AT, 2), sold_listing(2, 2), listing(4, "1.00", AT, 1)]).await;
    let after = entities(&stack).await;
    let moment = stack.aws.recovery().moment();
    stack.aws.recovery().cut_last_transaction(undone_rows);
    stack.feed(&[listing(1, "666.00", AT, 3), sold_listing(3, 2), listing(5, "1.00", AT, 1)]).await;
    let damaged = entities(&stack).await;
    let warm = Reader::start(&stack).await;
    assert_eq!(shown(&stack, &warm).await.as_ref(), Some(&damaged));

    let (is_done, states) = (AtomicBool::new(false), [before.clone(), after.clone(), damaged]);
    let restoring = async {
        let program = restore(&stack, "market", moment, &[]).await;
        is_done.store(true, Ordering::Release);
        program
    };
    let (program, ()) = tokio::join!(restoring, read_until(&is_done, &stack, &warm, &states));
    assert_eq!(program.code, 0, "{what}: {program:?}");
    assert_eq!(program.json()["in_line"], undone_rows == 0, "{what}: {program:?}");

    let kept = entities(&stack).await;
    assert_right(Some(&kept), &before, &after, &what);
    warm.wait();
    assert_eq!(shown(&stack, &warm).await.as_ref(), Some(&kept), "{what}, warm");
    assert_eq!(shown(&stack, &Reader::start(&stack).await).await.as_ref(), Some(&kept), "{what}, cold");
    assert_settings(&stack, TABLE).await;
    assert!(feed_is_on(&stack));

    // The feed is applied again: what the restore undid, and something new.
    let (queue, again) =
        (stack.queue(Queue::Feed), [listing(1, "2.00", AT, 2), sold_listing(2, 2), listing(4, "1.00", AT, 1)]);
    let messages = again.into_iter().chain([listing(6, "1.00", AT, 1)]).map(|message| message.to_string());
    queue.send(&messages.collect::<Vec<_>>()).await;
    queue.wait_until_empty().await;
    let kept = entities(&stack).await;
    assert_eq!(kept.len(), after.len() + 1, "{what}: {kept:?}");
    warm.wait();
    assert_eq!(shown(&stack, &warm).await.as_ref(), Some(&kept), "{what}, warm, after a write");
    assert_eq!(shown(&stack, &Reader::start(&stack).await).await.as_ref(), Some(&kept), "{what}, cold, after a write");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_market_is_right_again_whichever_rows_its_last_transaction_lacks() {
    join_all([0, 0b00001, 0b00110, 0b11010].map(restored)).await;
}
