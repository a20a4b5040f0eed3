//! The stack of one run: a fresh AWS side and the functions.

use secrets::KeyringCache;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use webhooks::delivery::Lane;
use webhooks::store::WebhookStore;

use admin::webhooks::{NewEndpoint, WebhookAdmin};
use guard::{Policy, SystemResolver};
use local::environment::Variables;
use local::meter::CostMeter;
use local::workers::{
    BackgroundTask, EventSource, INGEST_INSTANCES, MAX_FIRST_LANE_INSTANCES, MAX_RETRY_LANE_INSTANCES,
    MAX_SLOW_LANE_INSTANCES, poll, poll_with_fleet,
};
use platform::aws::{Environment, Patience};
use platform::preflight;
use platform::resources::{INGEST_TIMEOUT, Queue, WEBHOOK_TIMEOUT};
use platform::service::Service;
use types::clock::{Clock, SystemClock};
use types::event::EventKind;
use types::ids::UserId;
use webhook::transport::{Reach, Transport};
use webhooks::{Drains, Queues, Schedule};

use crate::aws_side::AwsProcess;
use crate::output::text;

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
        let lookup = |name: &str| aws.variables.get(name);
        let sqs = queues::client(&Environment::read(&lookup).map_err(text)?, Patience::Bulk);
        let feed = aws.variables.get(Queue::Feed.variable()).ok_or("no feed queue")?;
        Ok(Self { aws, meter: CostMeter::default(), sqs, feed })
    }

    /// Adds an endpoint that receives `listing.sold` to an account.
    pub(super) async fn add(&self, user_id: UserId, url: String) -> Result<(), String> {
        let new = NewEndpoint { user_id, url, events: [EventKind::ListingSold].into() };
        self.admin()?.add(new).await.map(drop).map_err(text)
    }

    pub(super) fn admin(&self) -> Result<WebhookAdmin, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let lookup = |name: &str| self.aws.variables.get(name);
        let service = Service::new(&lookup, Arc::clone(&clock)).map_err(text)?;
        let (sqs, [slow]) = queues::from_service(&service, [Queue::WebhooksSlow]).map_err(text)?;
        let store = WebhookStore::from_service(&service, Patience::Bulk, preflight::get).map_err(text)?;
        Ok(WebhookAdmin {
            drains: Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), Schedule::default()),
            store,
            keyring: KeyringCache::from_service(&service).map_err(text)?,
            policy: Policy::with_loopback(),
            resolver: Arc::new(SystemResolver),
            clock,
        })
    }

    /// Starts the functions. Their calls are counted.
    pub(super) async fn functions(&self, time_scale: NonZeroU32) -> Result<Vec<BackgroundTask>, String> {
        let variables: &Variables = &self.aws.variables;
        let lookup = |name: &str| variables.get(name);
        let service = self.meter.service(&lookup, Arc::new(SystemClock::new())).map_err(text)?;
        let sqs = self.meter.attach_to_queues(&self.sqs);
        let (_, [first, retry, slow]) = queues::from_service(&service, Queue::LANES).map_err(text)?;
        let schedule = Schedule::scaled_by(time_scale);
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
