//! Starts one process of a program and measures it from its start.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use platform::metrics::NAMESPACE_VARIABLE;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::runtime_api::{ProgramMessage, RuntimeApi};
use crate::aws_side::AwsProcess;
use crate::cpu::child_time;
use crate::memory::Memory;
use crate::output::text;

/// A program that sends nothing for this long is taken to hang.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// What was measured of a process.
pub(super) struct StartTimes {
    /// The time from its start until it asked for its first event.
    pub(super) ready: Duration,
    /// The time from its start until it had answered that event.
    pub(super) answered: Duration,
    /// How long each further event took.
    pub(super) warm: Vec<Duration>,
    /// The CPU time of the further events together, to a hundredth of a second.
    pub(super) warm_cpu: Duration,
    /// The length of its log, in bytes.
    pub(super) log_bytes: u64,
    /// The most memory that it ever had resident, in bytes.
    pub(super) peak_bytes: u64,
}

/// Starts a program, hands it one event and then `more` events, and ends it. It must answer each with one of the
/// `expected` statuses, or with no status.
pub(super) async fn start(
    path: &Path,
    aws: &AwsProcess,
    event: &Value,
    more: usize,
    expected: &[u64],
) -> Result<StartTimes, String> {
    let mut api = RuntimeApi::start(event).await?;
    let mut command = Command::new(path);
    command
        .env_clear()
        .envs(aws.variables.iter())
        .env("AWS_LAMBDA_RUNTIME_API", &api.address)
        .env("AWS_LAMBDA_FUNCTION_NAME", "bench")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env(NAMESPACE_VARIABLE, "Marketplace")
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(text)?;
    let mut log = child.stdout.take().ok_or("it has no standard output")?;
    let log = tokio::spawn(async move { tokio::io::copy(&mut log, &mut tokio::io::sink()).await });
    let (ready, answered) = invocation(&mut api, &mut child, expected).await?;
    let cpu_before = child_time(&child);
    let mut warm = Vec::with_capacity(more);
    for _ in 0..more {
        let (handed, answered) = invocation(&mut api, &mut child, expected).await?;
        warm.push(answered - handed);
    }
    let warm_cpu = child_time(&child).saturating_sub(cpu_before);
    let peak_bytes = child.id().map_or(0, |id| Memory::of_process(id).peak);
    child.kill().await.map_err(text)?;
    let log_bytes = log.await.map_err(text)?.map_err(text)?;
    Ok(StartTimes { ready: ready - begun, answered: answered - begun, warm, warm_cpu, log_bytes, peak_bytes })
}

/// Returns when the program was handed an event, and when it had answered.
async fn invocation(api: &mut RuntimeApi, child: &mut Child, expected: &[u64]) -> Result<(Instant, Instant), String> {
    let ProgramMessage::Ready(handed) = next_message(api, child).await? else {
        return Err("it answers without an event".to_owned());
    };
    match next_message(api, child).await? {
        ProgramMessage::Answered(at, answer) if is_expected(&answer, expected) => Ok((handed, at)),
        ProgramMessage::Answered(_, answer) => Err(format!("it answers {}", String::from_utf8_lossy(&answer))),
        ProgramMessage::Ready(_) => Err("it asks again before it has answered".to_owned()),
    }
}

async fn next_message(api: &mut RuntimeApi, child: &mut Child) -> Result<ProgramMessage, String> {
    tokio::select! {
        message = timeout(MESSAGE_TIMEOUT, api.next()) => message.map_err(|_| "it hangs".to_owned())?,
        status = child.wait() => Err(format!("it has ended: {status:?}")),
    }
}

fn is_expected(answer: &Bytes, expected: &[u64]) -> bool {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    answer["statusCode"].as_u64().is_none_or(|status| expected.contains(&status))
}
