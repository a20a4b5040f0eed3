//! The AWS side in a process of its own, so that its CPU time and memory do not count as ours.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use local::aws::limits::Limits;
use local::environment::Variables;
use local::seed::StackAdmin;
use platform::aws::Environment;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use types::clock::SystemClock;

use crate::child::{child_command, parent_ended};
use crate::cpu;
use crate::output::text;

/// The name of the subcommand.
const SUBCOMMAND: &str = "aws-side";

/// A running AWS side with the tables and queues of a stack. It stops when this is dropped.
pub(crate) struct AwsProcess {
    /// The variables by which functions find it.
    pub(crate) variables: Variables,
    process: Child,
}

impl AwsProcess {
    /// Starts an empty AWS side on a free port.
    pub(crate) async fn start() -> Result<Self, String> {
        Self::start_delayed(0).await
    }

    /// Starts an empty AWS side that delays every DynamoDB call by this many milliseconds.
    pub(crate) async fn start_delayed(store_latency_ms: u64) -> Result<Self, String> {
        Self::start_with([store_latency_ms.to_string()]).await
    }

    /// Starts an empty AWS side that has the limits and latencies of AWS.
    pub(crate) async fn start_limited() -> Result<Self, String> {
        Self::start_with(["--limits"]).await
    }

    /// Starts an AWS side that keeps its tables and objects in a folder.
    pub(crate) async fn start_in(folder: &Path) -> Result<Self, String> {
        Self::start_with([OsStr::new("--data"), folder.as_os_str()]).await
    }

    async fn start_with(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Self, String> {
        let mut command = child_command(SUBCOMMAND)?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(text)?;
        let stdout = process.stdout.take().ok_or("the AWS side has no standard output")?;
        let line = BufReader::new(stdout).lines().next_line().await.map_err(text)?;
        let line = line.ok_or("the AWS side did not start")?;
        let (endpoint_url, dynamodb_url) = line.split_once(' ').ok_or("the AWS side did not print its two URLs")?;
        Ok(Self { variables: Variables::new(endpoint_url).with_dynamodb_at(dynamodb_url), process })
    }

    /// Ends it, and waits until its files are closed.
    pub(crate) async fn stop(mut self) -> Result<(), String> {
        // Waiting closes its standard input first.
        self.process.wait().await.map(drop).map_err(text)
    }

    /// Returns its CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        cpu::child_time(&self.process)
    }

    /// Returns the environment of those who use it.
    pub(crate) fn environment(&self) -> Result<Environment, String> {
        Environment::read(&|name| self.variables.get(name)).map_err(text)
    }

    /// Returns the administration of its stack.
    pub(crate) fn admin(&self) -> Result<StackAdmin, String> {
        StackAdmin::new(&self.variables, Arc::new(SystemClock::new()))
    }
}

/// Runs as the AWS side until standard input ends.
pub(crate) async fn run(store_latency_ms: u64, is_limited: bool, data: Option<&Path>) -> Result<(), String> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let aws = local::aws::AwsSide::start(any_port, data).await.map_err(text)?;
    StackAdmin::new(&Variables::new(&aws.endpoint_url), Arc::new(SystemClock::new()))?.set_up(None).await?;
    // DynamoDB's own endpoint knows no delays and no limits.
    let is_direct = store_latency_ms == 0 && !is_limited;
    let dynamodb_url = if is_direct { &aws.dynamodb_url } else { &aws.endpoint_url };
    aws.delay_store(Duration::from_millis(store_latency_ms));
    if is_limited {
        aws.limits().set(Limits::aws());
    }
    println!("{} {dynamodb_url}", aws.endpoint_url);
    parent_ended().await
}
