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
    /// The most memory that it ever had resident, in bytes.
    pub(super) peak_bytes: u64,
}

/// Starts a program, hands it one event and then `more` events, and ends it.
pub(super) async fn start(path: &Path, aws: &AwsProcess, event: &Value, more: usize) -> Result<StartTimes, String> {
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
        .stdout(Stdio::null())
        .kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(text)?;
    let (ready, answered) = invocation(&mut api, &mut child).await?;
    let mut warm = Vec::with_capacity(more);
    for _ in 0..more {
        let (handed, answered) = invocation(&mut api, &mut child).await?;
        warm.push(answered - handed);
    }
    let peak_bytes = child.id().map_or(0, |id| Memory::of_process(id).peak);
    child.kill().await.map_err(text)?;
    Ok(StartTimes { ready: ready - begun, answered: answered - begun, warm, peak_bytes })
}

/// Returns when the program was handed an event, and when it had answered.
async fn invocation(api: &mut RuntimeApi, child: &mut Child) -> Result<(Instant, Instant), String> {
    let ProgramMessage::Ready(handed) = next_message(api, child).await? else {
        return Err("it answers without an event".to_owned());
    };
    match next_message(api, child).await? {
        ProgramMessage::Answered(at, answer) if is_good(&answer) => Ok((handed, at)),
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

/// Returns whether the answer is a success. A 404 counts as one too.
fn is_good(answer: &Bytes) -> bool {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    answer["statusCode"].as_u64().is_none_or(|status| [200, 404].contains(&status))
}
