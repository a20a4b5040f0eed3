//! Puts the parts together as the command line says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shared::clock::{Clock, SystemClock};
use shared::webhooks::Schedule;
use shared::webhooks::guard::Policy;
use webhook::transport::{Reach, Transport};

use crate::aws::{AwsSide, Relay};
use crate::cli::Options;
use crate::demo;
use crate::environment::Variables;
use crate::instance::Instance;
use crate::ready::Ready;
use crate::seed::Admin;
use crate::workers::{Webhooks, Workers};

/// So long an end waits for the feed.
const DRAIN: Duration = Duration::from_secs(15);

/// The running parts; they end when this is dropped.
pub struct Stack {
    /// What a user needs to know of them.
    pub ready: Ready,
    workers: Option<Workers>,
    aws: Option<AwsSide>,
    _relay: Option<Relay>,
    _instance: Option<Instance>,
}

impl Stack {
    /// Starts what the options ask for.
    pub async fn start(options: &Options) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::with_offset_seconds(options.clock_offset_s));
        let latency = Duration::from_millis(options.store_latency_ms);
        let (aws, relay, variables, keys) = match &options.aws_endpoint {
            None => {
                let data = options.data.as_deref();
                let mut aws = AwsSide::start(options.aws_listen, data).await.map_err(|error| error.to_string())?;
                aws.expire_items();
                let variables = Variables::at(&aws.endpoint_url);
                let keys = prepare(&variables, data, options.empty).await?;
                aws.delay_store(latency);
                (Some(aws), None, variables, keys)
            }
            Some(url) if latency.is_zero() => (None, None, Variables::at_foreign(url).await?, Vec::new()),
            Some(url) if !url.starts_with("http://") => {
                return Err("--store-latency-ms needs an http:// endpoint".to_owned());
            }
            Some(url) => {
                let relay = Relay::start(url, latency).await.map_err(|error| error.to_string())?;
                let variables = Variables::at_foreign(&relay.endpoint_url).await?;
                (None, Some(relay), variables, Vec::new())
            }
        };
        let variables = if options.allow_loopback_webhooks { variables.with_loopback_webhooks() } else { variables };
        let (instance, workers) = if options.aws_only {
            (None, None)
        } else {
            let own = match &aws {
                Some(aws) if latency.is_zero() => variables.clone().with_dynamodb_at(&aws.dynamodb_url),
                _ => variables.clone(),
            };
            let started = Instance::start(options.listen, &own, Arc::clone(&clock)).await;
            let instance = started.map_err(|error| error.to_string())?;
            (Some(instance), Some(Workers::start(&own, clock, webhooks(options)?).await?))
        };
        let ready = Ready {
            base_url: instance.as_ref().map(|instance| instance.base_url.clone()),
            user_id: (!keys.is_empty()).then(demo::demo_user),
            keys,
            variables,
            is_foreign: options.aws_endpoint.is_some(),
        };
        Ok(Self { ready, workers, aws, _relay: relay, _instance: instance })
    }

    /// Waits, though not for ever, until the feed is applied, if its queue ends with this process.
    pub async fn drain(&self) {
        let (Some(workers), Some(_)) = (&self.workers, &self.aws) else { return };
        if matches!(workers.feed.count().await, Ok(0)) {
            return;
        }
        eprintln!("local: applying what is left of the feed; Ctrl-C again ends at once");
        if tokio::time::timeout(DRAIN, workers.feed.emptied()).await.is_err() {
            let left = workers.feed.count().await.unwrap_or_default();
            eprintln!("local: {left} messages of the feed are lost");
        }
    }
}

/// How the options want webhooks sent.
fn webhooks(options: &Options) -> Result<Webhooks, String> {
    let policy = if options.allow_loopback_webhooks { Policy::with_loopback() } else { Policy::public() };
    let transport = Transport::new(Reach { policy, ..Reach::public() }).map_err(|error| error.to_string())?;
    Ok(Webhooks { transport, schedule: Schedule::scaled_by(options.time_scale) })
}

/// Seeds with the machine's own time: a wrong clock is an instance's, not the market's.
async fn prepare(variables: &Variables, data: Option<&Path>, empty: bool) -> Result<Vec<crate::seed::DemoKey>, String> {
    let admin = Admin::new(variables, Arc::new(SystemClock::new()))?;
    admin.set_up().await?;
    if empty {
        return Ok(Vec::new());
    }
    admin.seed(data).await?;
    admin.demo_keys().await
}
