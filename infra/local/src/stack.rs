//! The command line: starts the parts that it asks for, connects them, and says how to use them.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use common::clock::{Clock, SystemClock};
use common::ids::UserId;
use common::resources::Resources;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use webhook::transport::{Reach, Transport};
use webhooks::Schedule;
use webhooks::guard::{LOOPBACK_VARIABLE, Policy};

use crate::aws::limits::{Limits, print_refusals};
use crate::aws::{AwsSide, Relay};
use crate::demo;
use crate::environment::Variables;
use crate::host::Host;
use crate::instance::Instance;
use crate::seed::{DemoKey, StackAdmin};
use crate::server::BackgroundTask;
use crate::workers::{SenderConfig, Workers};

/// At the end, the longest wait for the feed to be applied.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// The whole marketplace API on one machine: no AWS account, no Docker, no JVM.
#[derive(Clone, Debug, Parser)]
#[command(name = "local", version)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
pub struct Options {
    /// Where to serve the API; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Where to serve DynamoDB, SQS, Secrets Manager and S3; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:4566", value_name = "ADDRESS")]
    pub aws_listen: SocketAddr,
    /// Keep the tables, the objects, the messages in the queues and the demo keys in this folder, which is private. If the process is killed, all of
    /// them are there after the next start; a power cut may take the messages of the last seconds.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["memory", "aws_endpoint"])]
    pub data: Option<PathBuf>,
    /// Keep everything in memory; the default.
    #[arg(long, conflicts_with = "aws_endpoint")]
    pub memory: bool,
    /// Fill an empty store with the demo market; the default.
    #[arg(long, conflicts_with_all = ["empty", "aws_endpoint"])]
    pub demo: bool,
    /// Create neither the demo market nor keys.
    #[arg(long)]
    pub empty: bool,
    /// Serve only the AWS side: DynamoDB, SQS, Secrets Manager and S3.
    #[arg(long, conflicts_with = "aws_endpoint")]
    pub aws_only: bool,
    /// Serve only the functions, against this AWS endpoint.
    #[arg(long, value_name = "URL")]
    pub aws_endpoint: Option<String>,
    /// Delay every DynamoDB call by this many milliseconds, to see round trips.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub store_latency_ms: u64,
    /// Give DynamoDB and S3 the throughput and the latencies of AWS, and print what they refuse.
    #[arg(long, conflicts_with = "aws_endpoint")]
    pub aws_limits: bool,
    /// Set this instance's clock wrong by this many seconds, to see that nothing breaks.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    pub clock_offset_s: i64,
    /// Divide the waiting times of webhook retries by this number and round them up to whole seconds.
    #[arg(long, default_value_t = NonZeroU32::MIN, value_name = "N")]
    pub time_scale: NonZeroU32,
    /// Allow webhook endpoints on this machine (`127.0.0.0/8`, `::1`, `localhost`).
    #[arg(long)]
    pub allow_loopback_webhooks: bool,
    /// Print one line of JSON once ready, instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Starts what the options ask for, prints how to use it, and runs until Ctrl-C.
///
/// It is no `async fn`, so that all of it is compiled once, with this library.
pub fn run(options: &Options) -> ExitCode {
    common::logging::to_stderr();
    let outcome = match Runtime::new() {
        Ok(runtime) => runtime.block_on(start_and_wait(options)),
        Err(error) => Err(format!("cannot start threads: {error}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("local: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start_and_wait(options: &Options) -> Result<(), String> {
    let stack = RunningStack::start(options).await?;
    if options.json {
        println!("{}", stack.ready.json());
    } else {
        println!("{}", stack.ready.text());
    }
    end(&stack).await.map_err(|error| format!("cannot wait for Ctrl-C: {error}"))
}

/// Waits for Ctrl-C or SIGTERM, and then until the feed has been applied or a second signal arrives.
async fn end(stack: &RunningStack) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    tokio::select! {
        () = stack.drain() => {}
        () = next() => {}
    }
    Ok(())
}

/// The running parts. They stop when this is dropped.
struct RunningStack {
    /// What a user needs to know about them.
    ready: Ready,
    workers: Option<Workers>,
    backend: Backend,
    _instance: Option<Instance>,
}

/// The AWS side that the functions use.
enum Backend {
    /// Our own, with what goes on beside it. Its data and messages are kept in a folder, or not.
    Own { aws: AwsSide, is_kept: bool, _tasks: Vec<BackgroundTask> },
    /// A foreign endpoint, which may be reached through a relay.
    Foreign { _relay: Option<Relay> },
}

impl RunningStack {
    /// Starts what the options ask for.
    async fn start(options: &Options) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::with_offset_seconds(options.clock_offset_s));
        let (variables, keys, backend) = match &options.aws_endpoint {
            None => Backend::start_own(options).await?,
            Some(url) => Backend::use_foreign(url, Duration::from_millis(options.store_latency_ms)).await?,
        };
        let variables = if options.allow_loopback_webhooks { variables.with_loopback_webhooks() } else { variables };
        let (instance, workers) = if options.aws_only {
            (None, None)
        } else {
            let mut host = Host::new(&variables, clock).map_err(|error| error.to_string())?;
            if let Backend::Own { aws, .. } = &backend {
                host = host.invoked_by(aws.invocations());
            }
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
        Ok(Self { ready, workers, backend, _instance: instance })
    }

    /// Waits until the feed has been applied, for at most `DRAIN_TIMEOUT`. Does not wait if the queue outlives this
    /// process.
    async fn drain(&self) {
        let (Some(workers), Backend::Own { is_kept, .. }) = (&self.workers, &self.backend) else { return };
        if matches!(workers.feed.count().await, Ok(0)) {
            return;
        }
        eprintln!("local: applying the messages left in the feed; press Ctrl-C again to stop at once");
        if tokio::time::timeout(DRAIN_TIMEOUT, workers.feed.wait_until_empty()).await.is_err() {
            let left = workers.feed.count().await.unwrap_or_default();
            let what = if *is_kept { "are applied after the next start" } else { "are lost" };
            eprintln!("local: {left} messages of the feed were not applied and {what}");
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
    /// belongs to the instance and not to the market. Returns it with the variables and the keys to use it.
    async fn start_own(options: &Options) -> Result<(Variables, Vec<DemoKey>, Self), String> {
        let data = options.data.as_deref();
        let aws = AwsSide::start(options.aws_listen, data).await.map_err(|error| error.to_string())?;
        let mut tasks = vec![aws.expire_items()];
        let variables = Variables::new(&aws.endpoint_url).with_tables_of_process();
        let admin = StackAdmin::new(&variables, Arc::new(SystemClock::new()))?;
        admin.set_up(data).await?;
        let mut keys = Vec::new();
        if !options.empty {
            admin.seed(data).await?;
            keys = admin.demo_keys(data).await?;
        }
        aws.delay_store(Duration::from_millis(options.store_latency_ms));
        tasks.extend(data.iter().flat_map(|folder| [admin.save_keyring_changes(folder), admin.find_lost_deliveries()]));
        if options.aws_limits {
            aws.limits().set(Limits::aws());
            let limiter = Arc::clone(aws.limits());
            tasks.push(BackgroundTask::start(print_refusals(move || limiter.take_report())));
        }
        Ok((variables, keys, Self::Own { aws, is_kept: data.is_some(), _tasks: tasks }))
    }

    /// Uses a foreign AWS endpoint.
    async fn use_foreign(url: &str, latency: Duration) -> Result<(Variables, Vec<DemoKey>, Self), String> {
        let mut relay = None;
        if !latency.is_zero() {
            if !url.starts_with("http://") {
                return Err("--store-latency-ms needs an http:// endpoint".to_owned());
            }
            relay = Some(Relay::start(url, latency).await.map_err(|error| error.to_string())?);
        }
        let endpoint = relay.as_ref().map_or(url, |relay| &relay.endpoint_url);
        let variables = Variables::from_deployed_stack(Resources::DEFAULT_STACK, Some(endpoint)).await?;
        Ok((variables, Vec::new(), Self::Foreign { _relay: relay }))
    }
}

/// What a user needs to know about a running stack.
#[derive(Clone, Debug)]
struct Ready {
    /// The base URL of the API; `None` if only the AWS side runs.
    base_url: Option<String>,
    /// The demo user, if there is a demo market.
    user_id: Option<UserId>,
    /// Keys of the demo user, the one with every scope first.
    keys: Vec<DemoKey>,
    /// The variables that functions and `marketctl` need.
    variables: Variables,
    /// Whether the AWS side is a foreign endpoint.
    is_foreign: bool,
}

impl Ready {
    /// Returns the document for scripts, to be printed on one line.
    fn json(&self) -> Value {
        json!({
            "base_url": self.base_url,
            "aws_endpoint_url": self.variables.get("AWS_ENDPOINT_URL"),
            "user_id": self.user_id,
            "api_key": self.keys.first().map(|key| key.text.reveal()),
            "env": self.variables,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// Returns the text for people.
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(url) = &self.base_url {
            let _ = writeln!(text, "The API is ready at {url}; its docs are at {url}/docs");
            let _ = writeln!(text, "Webhooks sent to {url}/dev/inbox are shown on that page\n");
        }
        if let (Some(user), Some(first)) = (self.user_id, self.keys.first()) {
            let _ = writeln!(text, "Keys of the demo user {user}:");
            for key in &self.keys {
                let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
                let _ = writeln!(text, "  {}  {}", key.text.reveal(), scopes.join(" "));
            }
            if let Some(url) = &self.base_url {
                let _ = write!(text, "\nTry it:\n{}", curl_lines(url, first.text.reveal()));
            }
        }
        let endpoint = self.variables.get("AWS_ENDPOINT_URL").unwrap_or_default();
        // Whoever starts only the AWS side runs functions against it, and they need all variables.
        let is_alone = self.base_url.is_none();
        let readers = if is_alone { "functions, marketctl and the AWS CLI" } else { "marketctl and the AWS CLI" };
        let _ = writeln!(text, "\nDynamoDB, SQS, Secrets Manager and S3 are at {endpoint}. For {readers}:");
        let of_tools = |name: &str| is_alone || name.starts_with("AWS_") || name == LOOPBACK_VARIABLE;
        // The credentials for a foreign endpoint are the user's own and are not printed.
        let own = |name: &str| name == "AWS_ENDPOINT_URL" || name == LOOPBACK_VARIABLE;
        let shown = self.variables.iter().filter(|(name, _)| of_tools(name) && (!self.is_foreign || own(name)));
        for (name, value) in shown {
            let _ = writeln!(text, "  export {name}={value}");
        }
        let _ = write!(text, "\nPress Ctrl-C to stop.");
        text
    }
}

fn curl_lines(url: &str, key: &str) -> String {
    let paths = [
        "/v1/public/me",
        "/v1/public/catalog?q=redline&page_size=2",
        "/v1/public/listings?sort=price_asc&max_price=5&page_size=2",
        "/v1/public/orders?page_size=1",
        "/v1/public/wallet/balance",
    ];
    let lines = paths.map(|path| format!("  curl -sS -H 'Authorization: Bearer {key}' '{url}{path}'\n"));
    lines.concat()
}
