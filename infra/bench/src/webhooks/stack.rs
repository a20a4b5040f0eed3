//! Stacks for webhooks: a fresh AWS side, the functions, and the events that they get.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use admin::webhooks::{NewEndpoint, WebhookAdmin};
use common::aws::Patience;
use common::clock::{Clock, SystemClock};
use common::event::EventKind;
use common::ids::UserId;
use common::preflight;
use common::resources::{INGEST_TIMEOUT, Queue, WEBHOOK_TIMEOUT};
use common::runtime::Service;
use futures_util::future::try_join_all;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use local::meter::{Bill, CostMeter};
use local::workers::{
    BackgroundTask, EventSource, INGEST_INSTANCES, MAX_FIRST_LANE_INSTANCES, MAX_RETRY_LANE_INSTANCES,
    MAX_SLOW_LANE_INSTANCES, poll, poll_with_fleet,
};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;
use webhook::transport::{Reach, Transport};
use webhooks::delivery::Lane;
use webhooks::guard::Policy;
use webhooks::secrets::KeyringCache;
use webhooks::store::WebhookStore;
use webhooks::{Drains, Queues, Schedule};

use crate::figures::text;
use crate::stack::{AwsProcess, send};

const MAX_BATCH_EVENTS: u64 = 10;
const MAX_CALLS_IN_FLIGHT: usize = 4;

/// How much is delivered, and by how many stacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The number of events in a burst.
    pub(super) events: u64,
    /// The number of accounts, each with one endpoint.
    pub(super) endpoints: u64,
    /// The number of stacks, each with embedded stores of its own.
    pub(super) stores: u64,
}

/// A stack for webhooks. The calls of its functions are counted.
pub(super) struct MeteredStack {
    pub(super) aws: AwsProcess,
    pub(super) meter: CostMeter,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) feed: String,
}

impl MeteredStack {
    pub(super) async fn start() -> Result<Self, String> {
        let aws = AwsProcess::start().await?;
        let sqs = common::queues::client(&aws.environment()?, Patience::Bulk);
        let feed = aws.variables.get(Queue::Feed.variable()).ok_or("no feed queue")?;
        Ok(Self { aws, meter: CostMeter::default(), sqs, feed })
    }

    /// Adds an endpoint that receives `listing.sold` to an account.
    pub(super) async fn add(&self, user_id: UserId, url: String) -> Result<(), String> {
        let new = NewEndpoint { user_id, url, events: [EventKind::ListingSold].into() };
        self.admin()?.add(new).await.map(drop).map_err(text)
    }

    fn admin(&self) -> Result<WebhookAdmin, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let lookup = |name: &str| self.aws.variables.get(name);
        let service = Service::new(&lookup, Arc::clone(&clock)).map_err(text)?;
        let (sqs, [slow]) = common::queues::from_service(&service, [Queue::WebhooksSlow]).map_err(text)?;
        let store = WebhookStore::from_service(&service, Patience::Bulk, preflight::get).map_err(text)?;
        Ok(WebhookAdmin {
            drains: Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), Schedule::default()),
            store,
            keyring: KeyringCache::from_service(&service).map_err(text)?,
            policy: Policy::with_loopback(),
            clock,
        })
    }

    /// Starts the functions. Their calls are counted.
    pub(super) async fn functions(&self) -> Result<Vec<BackgroundTask>, String> {
        let lookup = |name: &str| self.aws.variables.get(name);
        let service = self.meter.service(&lookup, Arc::new(SystemClock::new())).map_err(text)?;
        let sqs = common::queues::client(&self.aws.environment()?.watched_by(self.meter.interceptor()), Patience::Bulk);
        let (_, [first, retry, slow]) = common::queues::from_service(&service, Queue::LANES).map_err(text)?;
        let schedule = Schedule::default();
        let source = EventSource::open(sqs.clone(), &self.feed, INGEST_TIMEOUT).await?;
        let mut running = Vec::new();
        for _ in 0..INGEST_INSTANCES {
            running.push(poll(source.clone(), ingest::worker(&service).map_err(text)?));
        }
        let reach = Reach { policy: Policy::with_loopback(), ..Reach::public() };
        let transport = Transport::new(reach).map_err(text)?;
        for (lane, most) in
            [(first, MAX_FIRST_LANE_INSTANCES), (retry, MAX_RETRY_LANE_INSTANCES), (slow, MAX_SLOW_LANE_INSTANCES)]
        {
            let source = EventSource::open(sqs.clone(), &lane, WEBHOOK_TIMEOUT).await?;
            let sender = webhook::worker(&service, transport.clone(), schedule).map_err(text)?;
            running.push(poll_with_fleet(source, most, move || sender.clone()));
        }
        let sweep = sweep::worker(&service, schedule).map_err(text)?;
        let period = Duration::from_secs(schedule.scaled(60).into());
        running.push(local::workers::schedule(period, Duration::from_secs(50), sweep));
        Ok(running)
    }
}

/// The stacks of one run, among which the accounts are divided. Each has an AWS side of its own, because an embedded
/// store does one thing at a time.
pub(super) struct Stacks {
    shares: Vec<Share>,
    accounts: u64,
}

/// A stack and the numbers of its accounts.
struct Share {
    stack: MeteredStack,
    accounts: Range<u64>,
}

impl Stacks {
    /// Starts the stacks for a load. Each account has one endpoint, whose URL ends with the account's number.
    pub(super) async fn start(load: Load, base_url: &str) -> Result<Self, String> {
        let mut shares = Vec::new();
        let bound = |stacks: u64| load.endpoints * stacks / load.stores;
        for stack in 0..load.stores {
            let share = Share { stack: MeteredStack::start().await?, accounts: bound(stack)..bound(stack + 1) };
            for number in share.accounts.clone() {
                share.stack.add(account(number), format!("{base_url}/{number}")).await?;
            }
            shares.push(share);
        }
        Ok(Self { shares, accounts: load.endpoints })
    }

    /// Starts the functions of each stack. Their calls are counted.
    pub(super) async fn functions(&self) -> Result<Vec<BackgroundTask>, String> {
        let started = try_join_all(self.shares.iter().map(|share| share.stack.functions())).await?;
        Ok(started.into_iter().flatten().collect())
    }

    /// Sends events to the accounts in turn, as fast as the queues accept them.
    pub(super) async fn burst(&self, events: u64) -> Result<(), String> {
        let bursts = self.shares.iter().map(|share| {
            let events = self.events_of(share, events);
            burst(&share.stack, events, share.accounts.clone())
        });
        try_join_all(bursts).await.map(drop)
    }

    /// Returns the CPU time of all AWS sides so far.
    pub(super) fn cpu(&self) -> Duration {
        self.shares.iter().map(|share| share.stack.aws.cpu()).sum()
    }

    /// Returns what the functions of all stacks have called since the last time.
    pub(super) fn take_bill(&self) -> Bill {
        let mut sum = Bill::default();
        for share in &self.shares {
            sum += share.stack.meter.take();
        }
        sum
    }

    /// Returns how many of all events are for the accounts of a share.
    fn events_of(&self, share: &Share, events: u64) -> u64 {
        let bound = |accounts: u64| events * accounts / self.accounts;
        bound(share.accounts.end) - bound(share.accounts.start)
    }
}

/// Returns the account with this number. Accounts are numbered from 0 and have one endpoint each.
pub(super) fn account(number: u64) -> UserId {
    Uuid::from_u128(0xacc0_0000 + u128::from(number)).into()
}

/// Sends events to the accounts in turn, as fast as the queue accepts them.
pub(super) async fn burst(stack: &MeteredStack, events: u64, accounts: Range<u64>) -> Result<(), String> {
    let batches = (0..events.div_ceil(MAX_BATCH_EVENTS)).map(|batch| {
        send_events(stack, batch * MAX_BATCH_EVENTS..events.min((batch + 1) * MAX_BATCH_EVENTS), &accounts)
    });
    stream::iter(batches).buffer_unordered(MAX_CALLS_IN_FLIGHT).try_collect::<Vec<()>>().await.map(drop)
}

/// Sends events one at a time, `per_second` of them per second.
pub(super) async fn steady(
    stack: &MeteredStack,
    events: u64,
    per_second: u32,
    accounts: Range<u64>,
) -> Result<(), String> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut sending = stream::FuturesUnordered::new();
    for number in 0..events {
        ticks.tick().await;
        sending.push(send_events(stack, number..number + 1, &accounts));
        while let Some(Some(sent)) = sending.next().now_or_never() {
            sent?;
        }
    }
    sending.try_collect::<Vec<()>>().await.map(drop)
}

/// Returns the data of every event.
pub(super) fn event_data() -> Value {
    json!({"listing_id": Uuid::from_u128(1), "order_id": Uuid::from_u128(2), "price_usd": "12.50", "kind": "bot"})
}

async fn send_events(stack: &MeteredStack, numbers: Range<u64>, accounts: &Range<u64>) -> Result<(), String> {
    let (now, width) = (SystemClock::new().now(), accounts.end - accounts.start);
    let event = |number: u64| {
        let event = json!({
            "type": "event", "id": Uuid::new_v4(), "event": "listing.sold",
            "account_id": account(accounts.start + number % width), "created_at": now, "data": event_data(),
        });
        event.to_string()
    };
    send(&stack.sqs, &stack.feed, &numbers.map(event).collect::<Vec<_>>()).await
}
