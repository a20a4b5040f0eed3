//! Kills the functions' process at random points while it works off the feed. Nothing is lost and nothing is applied
//! twice: the final state is the one of the newest messages applied once each.

mod messages;

use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use local::aws::limits::Limits;
use local::environment::Variables;
use messages::History;
use serde_json::Value;
use tests::{
    FeedQueue, Stack, answers, assert_orders_are_dense, assert_same, assert_the_log_tells_all, local, marketctl, tables,
};
use tokio::process::Child;
use types::clock::{Clock, SystemClock};

/// A queue that takes longer than this will never get so short.
const BACKLOG_TIMEOUT: Duration = Duration::from_mins(3);

async fn survives(seed: u64, count: usize, limits: Option<Limits>) {
    let now = SystemClock::new().now();
    let history = History::from_seed(seed, count, now);
    let reference = Stack::new().await;
    reference.clock.set_wall(now);
    reference.feed(&history.newest).await;

    let stack = Stack::new().await;
    if let Some(limits) = limits {
        stack.aws.limits().set(limits);
    }
    let queue = stack.feed_queue();
    // The messages that a killed process was working on come back after two seconds instead of a minute and a half.
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "2").await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let sent = marketctl(&variables, &["--json", "feed", "send", "-"], &history.messages.join("\n")).await;
    assert_eq!((sent.code, &sent.json()["sent"]), (0, &count.into()), "{sent:?}");
    for backlog in history.kills {
        let (mut process, _) = functions(&stack).await;
        let reached = tokio::time::timeout(BACKLOG_TIMEOUT, worked_off(&queue, backlog)).await;
        reached.unwrap_or_else(|_| panic!("seed {seed} never gets down to {backlog} messages"));
        process.kill().await.unwrap();
        assert!(queue.backlog.count().await.unwrap() > 0, "seed {seed} was done before the kill at {backlog} messages");
    }
    let (_process, _) = functions(&stack).await;
    queue.wait_until_empty().await;
    stack.aws.limits().lift();

    let letters = queue.take_dead_letters().await;
    assert!(letters.iter().all(|letter| letter.attribute("field") == "type"), "{letters:?}");
    let mut refused: Vec<String> = letters.into_iter().map(|letter| letter.body).collect();
    // A kill between sending the copy and the acknowledgement makes a second copy.
    refused.dedup();
    assert_eq!(refused, history.invalid, "seed {seed}");
    assert_same(&tables(&stack).await, &tables(&reference).await, &format!("tables of seed {seed}"));
    assert_orders_are_dense(&stack).await;
    assert_the_log_tells_all(&stack).await;
    let (users, variants) = (messages::users(), messages::variants());
    let [found, expected] = [&stack, &reference].map(|stack| answers(stack, now, &users, &variants));
    assert_same(&found.await, &expected.await, &format!("answers of seed {seed}"));
}

/// Starts a process that runs only the functions.
async fn functions(stack: &Stack) -> (Child, Value) {
    local(&["--aws-endpoint", &stack.aws.endpoint_url]).await
}

async fn worked_off(queue: &FeedQueue, backlog: u64) {
    while queue.backlog.count().await.unwrap() > backlog {
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_any_point_do_not_change_the_final_state() {
    for seed in 1..=3 {
        survives(seed, 2_000, None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_any_point_do_not_change_the_final_state_on_a_store_with_limits() {
    survives(4, 600, Some(Limits::aws())).await;
}

/// `FEED_CRASH_SEEDS=20 FEED_CRASH_MESSAGES=10000 cargo test --release --workspace --test it many_seeds -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run it by hand after a change of the feed"]
async fn many_seeds_and_longer_histories() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (seeds, messages) = (number("FEED_CRASH_SEEDS", 20), number("FEED_CRASH_MESSAGES", 10_000));
    for seed in 1..=seeds {
        survives(1_000 + seed as u64, messages, None).await;
        println!("seed {seed} of {seeds}: {messages} messages");
    }
}
