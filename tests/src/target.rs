//! What the tests of `tests/it/anywhere` run against: a stack of their own in this process, or, if the environment
//! names one, the deployed stack that all of them share. So each of them makes do with a base URL and an AWS
//! endpoint, with records that are its own, and with a clock that it cannot set.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use feed::Applied;
use local::environment::Variables;
use local::workers::Workers;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use types::clock::SystemClock;
use uuid::Uuid;

use crate::administrator::Administrator;
use crate::client::{Client, Reply};
use crate::queue::FeedQueue;
use crate::stack::{Running, Stack};

/// The base URL of the deployed stack; its AWS side is where the usual variables of AWS tools say.
const BASE_URL: &str = "MARKETPLACE_BASE_URL";
/// Something hangs if what a test waits for has not come by then.
const PATIENCE: Duration = Duration::from_mins(3);
/// A committed change is seen everywhere after so many seconds.
const VISIBLE: u64 = 2;
/// The bits of a test's ids that are its own to count with.
const COUNTER: u128 = u32::MAX as u128;

/// A stack that answers, and a part of its records that is nobody else's.
pub struct Target {
    pub client: Client,
    pub variables: Variables,
    administrator: Administrator,
    own: Option<Own>,
    part: Uuid,
}

/// A stack in this process.
struct Own {
    _stack: Stack,
    running: Running,
    _workers: Workers,
}

impl Deref for Target {
    type Target = Administrator;

    fn deref(&self) -> &Administrator {
        &self.administrator
    }
}

impl Target {
    /// The deployed stack, or a new one with all its functions.
    pub async fn new() -> Self {
        match std::env::var(BASE_URL) {
            Ok(base_url) => Self::deployed(&base_url).await,
            Err(_) => Self::here().await,
        }
    }

    async fn here() -> Self {
        let stack = Stack::new().await;
        let workers = stack.workers().await;
        let running = stack.instance_with(&stack.aws.endpoint_url, stack.clock.clone()).await;
        let variables = Variables::at(&stack.aws.endpoint_url);
        let administrator = Administrator::of(&variables, stack.clock.clone());
        let client = running.client.clone();
        let own = Some(Own { _stack: stack, running, _workers: workers });
        Self { client, variables, administrator, own, part: Uuid::new_v4() }
    }

    async fn deployed(base_url: &str) -> Self {
        let endpoint_url = std::env::var("AWS_ENDPOINT_URL").unwrap();
        let variables = Variables::at_foreign(&endpoint_url).await.unwrap();
        let administrator = Administrator::of(&variables, Arc::new(SystemClock::new()));
        // What stands for AWS may be slow for a moment on a small machine.
        let client = Client::of(base_url).asking_again(5);
        Self { client, variables, administrator, own: None, part: Uuid::new_v4() }
    }

    /// Whether other tests see and change the same records.
    pub fn is_shared(&self) -> bool {
        self.own.is_none()
    }

    /// A word in lower case that only this test's names, kinds and keys have in them.
    pub fn word(&self) -> String {
        format!("w{}", &self.part.simple().to_string()[..12])
    }

    /// The n-th id of this test; they sort by their numbers.
    pub fn uuid(&self, number: u32) -> Uuid {
        Uuid::from_u128((self.part.as_u128() & !COUNTER) | u128::from(number))
    }

    /// The time so many seconds ago, as messages tell it.
    pub fn ago(&self, seconds: i64) -> String {
        self.now().plus_millis(-1_000 * seconds).to_string()
    }

    /// Lets time pass.
    pub async fn wait(&self, seconds: u64) {
        match &self.own {
            Some(own) => own.running.wait(seconds),
            None => sleep(Duration::from_secs(seconds)).await,
        }
    }

    /// Applies messages, each of which must change something, and waits until everybody sees them.
    pub async fn feed(&self, messages: &[Value]) {
        self.administrator.feed(messages).await;
        self.wait(VISIBLE).await;
    }

    /// Applies messages, says what became of each, in order, and waits until everybody sees them.
    pub async fn feed_outcomes(&self, messages: &[Value]) -> Vec<Applied> {
        let outcomes = self.administrator.feed_outcomes(messages).await;
        self.wait(VISIBLE).await;
        outcomes
    }

    /// The feed's queues.
    pub fn feed_queue(&self) -> FeedQueue {
        FeedQueue::of(&self.variables)
    }

    /// Asks again every second until an answer is as it should be.
    pub async fn get_until(&self, key: &str, path: &str, is_so: impl Fn(&Reply) -> bool) -> Reply {
        let begun = Instant::now();
        loop {
            let reply = self.client.get(key, path).await;
            if is_so(&reply) {
                return reply;
            }
            assert!(begun.elapsed() < PATIENCE, "{path}: {reply:?}");
            self.wait(1).await;
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for a minute of which so many seconds are left, so that budgets are not filled up meanwhile.
    pub async fn minute_with(&self, seconds: u32) {
        while self.now().seconds_to_next_minute() < seconds {
            self.wait(1).await;
        }
    }

    /// An answer shows this limit and so many requests left; and when the minute ends, exactly if time stands still.
    pub fn assert_rate(&self, reply: &Reply, limit: u32, remaining: u32) {
        let (shown_limit, shown_remaining, reset) = reply.rate();
        assert_eq!((shown_limit, shown_remaining), (limit, remaining), "{reply:?}");
        match &self.own {
            Some(_) => assert_eq!(reset, self.now().seconds_to_next_minute()),
            None => assert!((1..=60).contains(&reset), "{reset}"),
        }
    }
}
