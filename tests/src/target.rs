//! The stack that the tests of `tests/it/anywhere` run against: a new one in this process or, if the environment
//! names one, a deployed stack that all of them share. So these tests use only a base URL and an AWS endpoint, touch
//! only records of their own, and cannot set the clock.
//!
//! The deployed stack that the environment names, if it names one.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use common::clock::SystemClock;
use common::resources::{Queue, Resources};
use feed::ApplyOutcome;
use local::environment::Variables;
use local::workers::Workers;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::client::{Client, HttpReply};
use crate::queue::TestQueue;
use crate::stack::{Administrator, RunningInstance, Stack};

/// What takes longer than this never comes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// A committed change is seen everywhere after this many seconds.
const PROPAGATION_SECONDS: u64 = 2;
/// The bits of an id that a test numbers its ids with.
const ID_NUMBER_MASK: u128 = u32::MAX as u128;

/// A running stack, and a set of ids in it that no other test uses.
pub struct Target {
    pub client: Client,
    pub variables: Variables,
    administrator: Administrator,
    own: Option<InProcess>,
    part: Uuid,
}

/// A stack in this process.
struct InProcess {
    stack: Stack,
    running: RunningInstance,
    other: OnceCell<RunningInstance>,
    _workers: Workers,
}

impl Deref for Target {
    type Target = Administrator;

    fn deref(&self) -> &Administrator {
        &self.administrator
    }
}

impl Target {
    /// Returns the deployed stack, or a new one with all its functions.
    pub async fn new() -> Self {
        match base_url() {
            Some(base_url) => Self::deployed(&base_url).await,
            None => Self::in_process().await,
        }
    }

    async fn in_process() -> Self {
        let stack = Stack::new().await;
        let workers = stack.workers().await;
        let running = stack.instance_with(&stack.aws.endpoint_url, stack.clock.clone()).await;
        let variables = Variables::new(&stack.aws.endpoint_url);
        let administrator = Administrator::new(&variables, stack.clock.clone());
        let client = running.client.clone();
        let own = Some(InProcess { stack, running, other: OnceCell::new(), _workers: workers });
        Self { client, variables, administrator, own, part: Uuid::new_v4() }
    }

    async fn deployed(base_url: &str) -> Self {
        let stack = stack_name();
        let endpoint_url = std::env::var("AWS_ENDPOINT_URL").ok();
        let variables = Variables::from_deployed_stack(&stack, endpoint_url.as_deref()).await.unwrap();
        let administrator = Administrator::new(&variables, Arc::new(SystemClock::new())).with_stack(&stack);
        // The emulated AWS may be slow for a moment on a small machine.
        let client = Client::new(base_url).with_max_repeats(5);
        Self { client, variables, administrator, own: None, part: Uuid::new_v4() }
    }

    /// Whether other tests share this stack.
    pub fn is_shared(&self) -> bool {
        self.own.is_none()
    }

    /// Returns clients of two instances. A deployed stack chooses itself which instance answers.
    pub async fn instances(&self) -> [Client; 2] {
        let other = match &self.own {
            Some(InProcess { stack, other, .. }) => {
                let start = || stack.instance_with(&stack.aws.endpoint_url, stack.clock.clone());
                other.get_or_init(start).await.client.clone()
            }
            None => self.client.clone(),
        };
        [self.client.clone(), other]
    }

    /// Returns a lower-case word for names, kinds and keys that no other test uses.
    pub fn word(&self) -> String {
        format!("w{}", &self.part.simple().to_string()[..12])
    }

    /// Returns this test's id with this number. The ids sort by their numbers.
    pub fn uuid(&self, number: u32) -> Uuid {
        Uuid::from_u128((self.part.as_u128() & !ID_NUMBER_MASK) | u128::from(number))
    }

    /// Returns the time this many seconds ago, as messages write it.
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

    /// Waits until every instance has read the marketplaces again. Each keeps them for half a minute, so until then one
    /// instance may know a marketplace that another does not.
    pub async fn wait_for_marketplaces(&self) {
        self.wait(31).await;
    }

    /// Applies messages, asserts that each changes something, and waits until they are seen everywhere.
    pub async fn feed(&self, messages: &[Value]) {
        self.administrator.feed(messages).await;
        self.wait(PROPAGATION_SECONDS).await;
    }

    /// Applies messages, waits until they are seen everywhere, and returns what became of each, in order.
    pub async fn feed_outcomes(&self, messages: &[Value]) -> Vec<ApplyOutcome> {
        let outcomes = self.administrator.feed_outcomes(messages).await;
        self.wait(PROPAGATION_SECONDS).await;
        outcomes
    }

    /// Returns a queue of the stack.
    pub fn queue(&self, queue: Queue) -> TestQueue {
        TestQueue::new(&self.variables, queue)
    }

    /// Sends a request every second until the answer is as it should be.
    pub async fn get_until(&self, key: &str, path: &str, is_so: impl Fn(&HttpReply) -> bool) -> HttpReply {
        let begun = Instant::now();
        loop {
            let reply = self.client.get(key, path).await;
            if is_so(&reply) {
                return reply;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{path}: {reply:?}");
            self.wait(1).await;
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until at least this many seconds are left of the current minute, so that no budget is refilled in the
    /// meantime.
    pub async fn minute_with(&self, seconds: u32) {
        while self.now().seconds_to_next_minute() < seconds {
            self.wait(1).await;
        }
    }

    /// Asserts that an answer shows this limit and this many remaining requests. If time stands still, its reset must
    /// be exact as well.
    pub fn assert_rate(&self, reply: &HttpReply, limit: u32, remaining: u32) {
        let (shown_limit, shown_remaining, reset) = reply.rate();
        assert_eq!((shown_limit, shown_remaining), (limit, remaining), "{reply:?}");
        match &self.own {
            Some(_) => assert_eq!(reset, self.now().seconds_to_next_minute()),
            None => assert!((1..=60).contains(&reset), "{reset}"),
        }
    }
}

/// The variable with the base URL of the deployed stack. The usual variables of AWS tools say where its AWS side is.
const BASE_URL_VARIABLE: &str = "MARKETPLACE_BASE_URL";
/// The variable with the name of the deployed stack, if it is not the default one.
const STACK_VARIABLE: &str = "MARKETPLACE_STACK";

/// Returns the base URL of the deployed stack. Without one, each test has a stack in its process.
pub(crate) fn base_url() -> Option<String> {
    std::env::var(BASE_URL_VARIABLE).ok()
}

/// Returns the name of the stack that the tests of `tests/it/anywhere` run against.
pub fn stack_name() -> String {
    std::env::var(STACK_VARIABLE).unwrap_or_else(|_| Resources::DEFAULT_STACK.to_owned())
}
