//! How soon a message in the feed shows in the API, with two processes of functions.

use std::time::Duration;

use serde_json::json;
use tests::{Client, FeedQueue, Stack, listing, local, set_limit};
use tokio::time::Instant;

const TEN_O_CLOCK: &str = "2026-11-20T10:00:00Z";
const SOLD_LISTINGS: u32 = 9;
/// Listings that stay, but whose prices change all the time.
const CHANGING_LISTINGS: u32 = 100;
/// A sale that takes longer than this never shows.
const SALES_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends fifty price changes a second until it is dropped.
async fn changes(queue: &FeedQueue) {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    for change in 0.. {
        ticks.tick().await;
        let (number, version) = (1_000 + change % CHANGING_LISTINGS, 2 + change / CHANGING_LISTINGS);
        queue.send(&[listing(number, &format!("{}.50", 500 + change), TEN_O_CLOCK, version.into()).to_string()]).await;
    }
}

/// Waits until an instance no longer shows the listing at this price. Asserts that its total is right then.
async fn gone(client: &Client, key: &str, price: u32, total: u32) {
    let path = format!("/v1/public/listings?min_price={price}&max_price={price}");
    while client.get(key, &path).await.json()["total"] != 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.get(key, "/v1/public/listings?page_size=1").await.json()["total"], total);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_sold_through_the_feed_is_gone_everywhere_within_two_seconds() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    set_limit(&stack, &key, 1_000_000).await;
    let listings = (1..=SOLD_LISTINGS).chain(1_000..1_000 + CHANGING_LISTINGS);
    stack.feed(&listings.map(|n| listing(n, &format!("{n}.00"), TEN_O_CLOCK, 1)).collect::<Vec<_>>()).await;
    let arguments = ["--aws-endpoint", &stack.aws.endpoint_url];
    let (one, other) = tokio::join!(local(&arguments), local(&arguments));
    let clients = [one.1, other.1].map(|ready| Client::new(ready["base_url"].as_str().unwrap()));
    let queue = stack.feed_queue();
    let sell = async {
        let mut times = Vec::new();
        for number in 1..=SOLD_LISTINGS {
            let mut sold = listing(number, "1.00", TEN_O_CLOCK, 2);
            sold["status"] = json!("sold");
            let begun = Instant::now();
            queue.send(&[sold.to_string()]).await;
            let total = CHANGING_LISTINGS + SOLD_LISTINGS - number;
            tokio::join!(gone(&clients[0], &key, number, total), gone(&clients[1], &key, number, total));
            times.push(begun.elapsed());
        }
        times.sort();
        times
    };
    let times = tokio::select! {
        times = tokio::time::timeout(SALES_TIMEOUT, sell) => times.expect("a sold listing stays"),
        () = changes(&queue) => unreachable!("changes never end"),
    };
    // Compares the median: a busy machine may delay some sales, but not most.
    assert!(times[times.len() / 2] < Duration::from_secs(2), "{times:?}");
    assert_eq!(queue.take_dead_letters().await, []);
}
