//! Starts the parts that the command line asks for, and connects them.

use std::sync::Arc;
use std::time::Duration;

use guard::Policy;
use platform::resources::Resources;
use types::clock::{Clock, SystemClock};
use webhook::transport::{Reach, Transport};
use webhooks::Schedule;

use crate::aws::limits::{Limits, print_refusals};
use crate::aws::{AwsSide, Relay};
use crate::cli::Options;
use crate::demo;
use crate::environment::Variables;
use crate::host::Host;
use crate::instance::Instance;
use crate::ready::Ready;
use crate::seed::{DemoKey, StackAdmin};
use crate::workers::{BackgroundTask, SenderConfig, Workers};

/// At the end, the longest wait for the feed to be applied.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// The running parts. They stop when this is dropped.
pub struct RunningStack {
    /// What a user needs to know about them.
    pub ready: Ready,
    workers: Option<Workers>,
    aws: Option<AwsSide>,
    _relay: Option<Relay>,
    _instance: Option<Instance>,
    _keyring: Option<BackgroundTask>,
    _refusals: Option<BackgroundTask>,
}

/// The AWS side that the functions use, and what a user needs to use it.
struct Backend {
    variables: Variables,
    keys: Vec<DemoKey>,
    aws: Option<AwsSide>,
    relay: Option<Relay>,
    keyring: Option<BackgroundTask>,
    refusals: Option<BackgroundTask>,
}

impl RunningStack {
    /// Starts what the options ask for.
    pub async fn start(options: &Options) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::with_offset_seconds(options.clock_offset_s));
        let Backend { variables, keys, aws, relay, keyring, refusals } = match &options.aws_endpoint {
            None => Backend::start_own(options).await?,
            Some(url) => Backend::use_foreign(url, Duration::from_millis(options.store_latency_ms)).await?,
        };
        let variables = if options.allow_loopback_webhooks { variables.with_loopback_webhooks() } else { variables };
        let (instance, workers) = if options.aws_only {
            (None, None)
        } else {
            let own = match &aws {
                Some(aws) if options.store_latency_ms == 0 && !options.aws_limits => {
                    aws.recovery().bypass();
                    variables.clone().with_dynamodb_at(&aws.dynamodb_url)
                }
                _ => variables.clone(),
            };
            let host = Host::new(&own, clock).map_err(|error| error.to_string())?;
            let host =
                aws.iter().fold(host, |host, aws| host.switched_by(aws.switches()).invoked_by(aws.invocations()));
            let instance = Instance::start(options.listen, &host).await.map_err(|error| error.to_string())?;
            (Some(instance), Some(Workers::start(&host, sender_config(options)?).await?))
        };
        let ready = Ready {
            base_url: instance.as_ref().map(|instance| instance.base_url.clone()),
            user_id: (!keys.is_empty()).then(demo::demo_user),
            keys,
            variables,
            is_foreign: options.aws_endpoint.is_some(),
        };
        Ok(Self { ready, workers, aws, _relay: relay, _instance: instance, _keyring: keyring, _refusals: refusals })
    }

    /// Waits until the feed has been applied, for at most `DRAIN_TIMEOUT`. Does not wait if the queue outlives this
    /// process.
    pub async fn drain(&self) {
        let (Some(workers), Some(_)) = (&self.workers, &self.aws) else { return };
        if matches!(workers.feed.count().await, Ok(0)) {
            return;
        }
        eprintln!("local: applying the messages left in the feed; press Ctrl-C again to stop at once");
        if tokio::time::timeout(DRAIN_TIMEOUT, workers.feed.wait_until_empty()).await.is_err() {
            let left = workers.feed.count().await.unwrap_or_default();
            eprintln!("local: {left} messages of the feed were not applied and are lost");
        }
    }
}

/// Returns how the options want webhooks to be sent.
fn sender_config(options: &Options) -> Result<SenderConfig, String> {
    let policy = if options.allow_loopback_webhooks { Policy::with_loopback() } else { Policy::public() };
    let transport = Transport::new(Reach { policy, ..Reach::public() }).map_err(|error| error.to_string())?;
    Ok(SenderConfig { transport, schedule: Schedule::scaled_by(options.time_scale) })
}

impl Backend {
    /// Starts our own AWS side, set up and seeded as the options say. It uses the machine's own time: a wrong clock
    /// belongs to the instance and not to the market.
    async fn start_own(options: &Options) -> Result<Self, String> {
        let data = options.data.as_deref();
        let mut aws = AwsSide::start(options.aws_listen, data).await.map_err(|error| error.to_string())?;
        aws.expire_items();
        let variables = Variables::new(&aws.endpoint_url);
        let admin = StackAdmin::new(&variables, Arc::new(SystemClock::new()))?;
        admin.set_up(data).await?;
        let mut keys = Vec::new();
        if !options.empty {
            admin.seed(data).await?;
            keys = admin.demo_keys().await?;
        }
        aws.delay_store(Duration::from_millis(options.store_latency_ms));
        let keyring = data.map(|folder| admin.save_keyring_changes(folder));
        let refusals = options.aws_limits.then(|| {
            aws.limits().set(Limits::aws());
            BackgroundTask::start(print_refusals(Arc::clone(aws.limits())))
        });
        Ok(Self { variables, keys, aws: Some(aws), relay: None, keyring, refusals })
    }

    /// Uses a foreign AWS endpoint.
    async fn use_foreign(url: &str, latency: Duration) -> Result<Self, String> {
        let mut relay = None;
        if !latency.is_zero() {
            if !url.starts_with("http://") {
                return Err("--store-latency-ms needs an http:// endpoint".to_owned());
            }
            relay = Some(Relay::start(url, latency).await.map_err(|error| error.to_string())?);
        }
        let endpoint = relay.as_ref().map_or(url, |relay| &relay.endpoint_url);
        let variables = Variables::from_deployed_stack(Resources::DEFAULT_STACK, Some(endpoint)).await?;
        Ok(Self { variables, keys: Vec::new(), aws: None, relay, keyring: None, refusals: None })
    }
}
