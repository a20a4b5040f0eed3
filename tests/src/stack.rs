//! A test's own stack on free ports: an empty AWS side, and instances whose clocks stand still.
//!
//! The administrator of a stack, who makes keys and applies messages.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use account::Account;
use admin::keys::NewKey;
use api::Handler;
use api::auth::KeyRecord;
use api::origin::ORIGIN_VARIABLE;
use common::aws::{Environment, Missing, Patience};
use common::clock::{Clock, ManualClock, SystemClock};
use common::ids::UserId;
use common::logging::FUNCTION_VARIABLE;
use common::metrics::NAMESPACE_VARIABLE;
use common::resources::Queue;
use common::runtime::Service;
use common::scope::{Scope, Tier};
use common::store::StoreError;
use common::timestamp::Timestamp;
use feed::{Applier, ApplyOutcome, Stores, parse};
use local::aws::AwsSide;
use local::aws::limits::Limits;
use local::environment::Variables;
use local::host::Host;
use local::instance::Instance;
use local::seed::StackAdmin;
use local::simulation::SimulatedInstance;
use local::workers::{SenderConfig, Workers};
use pretraffic::{Pretraffic, STACK_VARIABLE, VERSIONS_VARIABLE};
use serde_json::Value;
use uuid::Uuid;

use crate::client::Client;
use crate::metrics::NAMESPACE;
use crate::privileges::Ledger;
use crate::proxy::Proxy;
use crate::template::Template;
use crate::webhooks::to_loopback;

/// The time at which every clock starts: the beginning of a minute.
pub const NOON: &str = "2026-11-20T12:00:00.000Z";

/// An AWS side with its administrator.
pub struct Stack {
    pub aws: AwsSide,
    pub clock: Arc<ManualClock>,
    /// What the stack's functions use.
    pub ledger: Ledger,
    administrator: Administrator,
}

impl Deref for Stack {
    type Target = Administrator;

    fn deref(&self) -> &Administrator {
        &self.administrator
    }
}

/// An instance with its clock and a client.
pub struct RunningInstance {
    pub client: Client,
    pub clock: Arc<ManualClock>,
    pub instance: Instance,
}

impl Stack {
    /// Starts an empty stack in memory.
    pub async fn new() -> Self {
        crate::metrics::hear_all_lines();
        let aws = AwsSide::start(any_port(), None).await.unwrap();
        let clock = clock_at(0);
        let administrator = Administrator::new(&Variables::new(&aws.endpoint_url), clock.clone());
        administrator.admin.set_up(None).await.unwrap();
        Self { aws, clock, ledger: Ledger::default(), administrator }
    }

    /// Starts an empty stack in memory whose DynamoDB has these limits. `aws.limits()` changes them, and says what they
    /// refused.
    pub async fn with_limits(limits: Limits) -> Self {
        let stack = Self::new().await;
        stack.aws.limits().set(limits);
        stack
    }

    /// Starts an instance whose clock shows noon. It loads what the store holds now.
    pub async fn instance(&self) -> RunningInstance {
        self.instance_with(&self.aws.endpoint_url, clock_at(0)).await
    }

    /// Starts an instance whose clock is wrong by this many seconds.
    pub async fn instance_off_by(&self, seconds: i64) -> RunningInstance {
        self.instance_with(&self.aws.endpoint_url, clock_at(seconds)).await
    }

    /// Starts an instance that reaches AWS through a proxy which can be made to fail.
    pub async fn instance_behind_proxy(&self) -> (RunningInstance, Proxy) {
        let proxy = Proxy::start(&self.aws.endpoint_url).await;
        let running = self.instance_with(&proxy.url, clock_at(0)).await;
        (running, proxy)
    }

    /// Starts an instance that accepts only requests with one of these secrets, and reaches AWS through a proxy.
    pub async fn instance_behind_edge(&self, secrets: &str) -> (RunningInstance, Proxy) {
        let proxy = Proxy::start(&self.aws.endpoint_url).await;
        let variables = variables(&proxy.url).with(ORIGIN_VARIABLE, secrets);
        (self.instance_of(&variables, clock_at(0)).await, proxy)
    }

    /// Starts one function of the API at noon, without a gateway. It loads what the store holds now.
    pub async fn lone<H: Handler + 'static>(
        &self,
        function: &'static str,
        build: impl FnOnce(&Service<'_>) -> Result<H, Missing>,
    ) -> (SimulatedInstance, Arc<ManualClock>) {
        let clock = clock_at(0);
        let host = self.host(&self.aws.endpoint_url, clock.clone());
        let mut instance = SimulatedInstance::cold(&host, function, build).unwrap();
        instance.init().await.unwrap();
        (instance, clock)
    }

    /// Starts the functions that queues trigger, at the stack's time. Webhooks may go to this machine.
    pub async fn workers(&self) -> Workers {
        self.workers_sending(to_loopback(1)).await
    }

    /// Starts them with another way to send webhooks.
    pub async fn workers_sending(&self, webhooks: SenderConfig) -> Workers {
        self.workers_with(&self.aws.endpoint_url, webhooks).await
    }

    /// Starts them at the machine's own time.
    pub async fn workers_in_real_time(&self, webhooks: SenderConfig) -> Workers {
        let host = self.host(&self.aws.endpoint_url, Arc::new(SystemClock::new()));
        Workers::start(&host, webhooks).await.unwrap()
    }

    /// Starts them at the stack's time, behind a proxy that can be made to fail.
    pub async fn workers_behind_proxy(&self) -> (Workers, Proxy) {
        let proxy = Proxy::start(&self.aws.endpoint_url).await;
        let workers = self.workers_with(&proxy.url, to_loopback(1)).await;
        (workers, proxy)
    }

    /// Builds the account's settings at the stack's time, reaching AWS at this endpoint, and checks what they use as
    /// before the first event.
    pub async fn account_at(&self, endpoint: &str) -> Account {
        let host = self.host(endpoint, self.clock.clone());
        let account = host.function("account", account::deployed).unwrap();
        for check in host.preflight() {
            assert_eq!(check.run().await.unwrap(), [""; 0]);
        }
        account
    }

    /// Starts an empty stack, and a proxy in front of it which can be made to fail.
    pub async fn with_proxy() -> (Self, Proxy) {
        let stack = Self::new().await;
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        (stack, proxy)
    }

    /// Builds the pre-traffic hook with the variables that the template gives it, reaching AWS at this endpoint.
    pub fn pretraffic_at(&self, endpoint: &str) -> Pretraffic {
        let deployed = &Template::read().functions["pretraffic"].properties;
        let given = |name: &str| deployed["Environment"]["Variables"][name].as_str().unwrap();
        let variables = variables(endpoint)
            .with(FUNCTION_VARIABLE, deployed["FunctionName"].as_str().unwrap())
            .with(STACK_VARIABLE, given(STACK_VARIABLE))
            .with(VERSIONS_VARIABLE, given(VERSIONS_VARIABLE));
        self.host_with(&variables, self.clock.clone()).function("pretraffic", pretraffic::worker).unwrap()
    }

    /// Deletes one of the stack's queues.
    pub async fn remove_queue(&self, queue: Queue) {
        let variables = variables(&self.aws.endpoint_url);
        let environment = Environment::read(&|name| variables.get(name)).unwrap();
        let sqs = common::queues::client(&environment, Patience::Bulk);
        sqs.delete_queue().set_queue_url(variables.get(queue.variable())).send().await.unwrap();
    }

    async fn workers_with(&self, endpoint: &str, webhooks: SenderConfig) -> Workers {
        Workers::start(&self.host(endpoint, self.clock.clone()), webhooks).await.unwrap()
    }

    /// A host whose functions may do only what the template allows.
    pub(crate) fn host(&self, endpoint: &str, clock: Arc<dyn Clock>) -> Host {
        self.host_with(&variables(endpoint), clock)
    }

    /// The same host with these variables.
    pub(crate) fn host_with(&self, variables: &Variables, clock: Arc<dyn Clock>) -> Host {
        let host = Host::new(variables, clock).unwrap().observed_by(self.ledger.observer());
        host.invoked_by(self.aws.invocations())
    }

    pub(crate) async fn instance_with(&self, endpoint: &str, clock: Arc<ManualClock>) -> RunningInstance {
        self.instance_of(&variables(endpoint), clock).await
    }

    async fn instance_of(&self, variables: &Variables, clock: Arc<ManualClock>) -> RunningInstance {
        let instance = Instance::start(any_port(), &self.host_with(variables, clock.clone())).await.unwrap();
        RunningInstance { client: Client::new(&instance.base_url), clock, instance }
    }
}

impl RunningInstance {
    /// Moves the instance's clock forward.
    pub fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// The environment of functions, with the variable that the template gives to all of them.
pub(crate) fn variables(endpoint: &str) -> Variables {
    Variables::new(endpoint).with(NAMESPACE_VARIABLE, NAMESPACE)
}

fn clock_at(offset_seconds: i64) -> Arc<ManualClock> {
    let noon: Timestamp = NOON.parse().unwrap();
    Arc::new(ManualClock::at(noon.plus_millis(offset_seconds * 1_000)))
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// A free key without a name and an end.
pub fn new_key(user_id: UserId, scopes: &[Scope]) -> NewKey {
    let scopes = scopes.iter().copied().collect();
    NewKey { user_id, name: None, tier: Tier::Free, limit_override: None, scopes, expires_at: None }
}

/// Makes keys and applies messages in a stack, at the time of a clock.
pub struct Administrator {
    pub admin: StackAdmin,
    pub clock: Arc<dyn Clock>,
}

impl Administrator {
    pub fn new(variables: &Variables, clock: Arc<dyn Clock>) -> Self {
        Self { admin: StackAdmin::new(variables, Arc::clone(&clock)).unwrap(), clock }
    }

    /// Returns one that reaches AWS through this environment.
    pub(crate) fn with_environment(environment: &Environment, clock: Arc<dyn Clock>) -> Self {
        Self { admin: StackAdmin::with_environment(environment, Arc::clone(&clock)), clock }
    }

    /// Administers the stack with this name instead of the default one.
    pub(crate) fn with_stack(self, stack: &str) -> Self {
        Self { admin: self.admin.with_stack(stack), ..self }
    }

    /// The time at which keys are made and messages applied.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Makes a free key for a new user.
    pub async fn key(&self, scopes: &[Scope]) -> String {
        self.key_of(Uuid::new_v4().into(), scopes).await.0
    }

    /// Makes a free key with every scope for a new user.
    pub async fn full_key(&self) -> String {
        self.key(&Scope::ALL).await
    }

    /// Makes a free key for a user. Returns its text and its record.
    pub async fn key_of(&self, user_id: UserId, scopes: &[Scope]) -> (String, KeyRecord) {
        self.key_with(new_key(user_id, scopes)).await
    }

    /// Makes a key. Returns its text and its record.
    pub async fn key_with(&self, new: NewKey) -> (String, KeyRecord) {
        let (text, record) = self.admin.keys().create(new).await.unwrap();
        (text.reveal().to_owned(), record)
    }

    /// Applies messages, and asserts that each changes something.
    pub async fn feed(&self, messages: &[Value]) {
        for outcome in self.feed_outcomes(messages).await {
            assert_eq!(outcome, ApplyOutcome::Changed);
        }
    }

    /// Applies messages and returns what became of each, in order.
    pub async fn feed_outcomes(&self, messages: &[Value]) -> Vec<ApplyOutcome> {
        self.feed_through(self.admin.stores(), messages).await
    }

    /// Like `feed_outcomes`, but through these stores.
    pub async fn feed_through(&self, stores: Stores, messages: &[Value]) -> Vec<ApplyOutcome> {
        self.try_to_feed(stores, messages).await.into_iter().map(Result::unwrap).collect()
    }

    /// Like `feed_through`, but the store may refuse.
    pub async fn try_to_feed(&self, stores: Stores, messages: &[Value]) -> Vec<Result<ApplyOutcome, StoreError>> {
        let now = self.now();
        let parsed = messages.iter().map(|message| parse(&message.to_string(), now).unwrap()).enumerate();
        let mut outcomes = Applier::new(stores).apply(parsed.collect(), &*self.clock).await;
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}
