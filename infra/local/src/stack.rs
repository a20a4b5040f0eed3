//! Puts the parts together as the command line says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shared::clock::{Clock, SystemClock};

use crate::aws::{AwsSide, Relay};
use crate::cli::Options;
use crate::demo;
use crate::environment::Variables;
use crate::instance::Instance;
use crate::ready::Ready;
use crate::seed::Admin;

/// The running parts; they end when this is dropped.
pub struct Stack {
    /// What a user needs to know of them.
    pub ready: Ready,
    _aws: Option<AwsSide>,
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
                let aws = AwsSide::start(options.aws_listen, data).await.map_err(|error| error.to_string())?;
                let variables = Variables::at(&aws.endpoint_url);
                let keys = prepare(&variables, data, options.empty).await?;
                aws.delay_store(latency);
                (Some(aws), None, variables, keys)
            }
            Some(url) if latency.is_zero() => (None, None, Variables::at_foreign(url), Vec::new()),
            Some(url) if !url.starts_with("http://") => {
                return Err("--store-latency-ms needs an http:// endpoint".to_owned());
            }
            Some(url) => {
                let relay = Relay::start(url, latency).await.map_err(|error| error.to_string())?;
                let variables = Variables::at_foreign(&relay.endpoint_url);
                (None, Some(relay), variables, Vec::new())
            }
        };
        let instance = if options.aws_only {
            None
        } else {
            let started = Instance::start(options.listen, &variables, clock).await;
            Some(started.map_err(|error| error.to_string())?)
        };
        let ready = Ready {
            base_url: instance.as_ref().map(|instance| instance.base_url.clone()),
            user_id: (!keys.is_empty()).then(demo::demo_user),
            keys,
            variables,
            is_foreign: options.aws_endpoint.is_some(),
        };
        Ok(Self { ready, _aws: aws, _relay: relay, _instance: instance })
    }
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
