//! Starts one process of a program under the Lambda Runtime API, and measures it from its start.

use std::convert::Infallible;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::metrics::NAMESPACE_VARIABLE;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::figures::text;
use crate::process::Memory;
use crate::stack::AwsProcess;

/// A program that sends nothing for this long is taken to hang.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// What a program of the API may answer.
const EXPECTED_STATUSES: [u64; 2] = [200, 404];

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
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(text)?;
    let mut log = child.stdout.take().ok_or("it has no standard output")?;
    tokio::spawn(async move { tokio::io::copy(&mut log, &mut tokio::io::sink()).await });
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
        ProgramMessage::Answered(at, answer) if is_expected(&answer) => Ok((handed, at)),
        ProgramMessage::Answered(_, answer) => Err(format!("it answers {}", String::from_utf8_lossy(&answer))),
        ProgramMessage::Ready(_) => Err("it asks again before it has answered".to_owned()),
    }
}

async fn next_message(api: &mut RuntimeApi, child: &mut Child) -> Result<ProgramMessage, String> {
    tokio::select! {
        message = timeout(MESSAGE_TIMEOUT, api.messages.recv()) => {
            message.map_err(|_| "it hangs".to_owned())?.ok_or_else(|| "the Runtime API has stopped".to_owned())
        }
        status = child.wait() => Err(format!("it has ended: {status:?}")),
    }
}

/// An answer to the API has one of these statuses. Other answers have none.
fn is_expected(answer: &Bytes) -> bool {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    answer["statusCode"].as_u64().is_none_or(|status| EXPECTED_STATUSES.contains(&status))
}

/// What a program has sent, and when.
enum ProgramMessage {
    /// It asked for an event and was given one.
    Ready(Instant),
    /// It has answered with this body.
    Answered(Instant, Bytes),
}

/// The Lambda Runtime API on loopback for one program. It hands out the same event again and again, and stops when this
/// is dropped.
struct RuntimeApi {
    /// Its address, in the form that a program is given.
    address: String,
    messages: UnboundedReceiver<ProgramMessage>,
    _serving: JoinSet<()>,
}

impl RuntimeApi {
    async fn start(event: &Value) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(text)?;
        let address = listener.local_addr().map_err(text)?.to_string();
        let (sender, messages) = unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Bytes::from(event.to_string()), sender));
        Ok(Self { address, messages, _serving: serving })
    }
}

async fn serve(listener: TcpListener, event: Bytes, sender: UnboundedSender<ProgramMessage>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Without this, each small answer would wait for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let (event, sender) = (event.clone(), sender.clone());
        let service = service_fn(move |request| answer(request, event.clone(), sender.clone()));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    event: Bytes,
    sender: UnboundedSender<ProgramMessage>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    if path.ends_with("/invocation/next") {
        // If nobody receives this any more, the measurement is over.
        let _ = sender.send(ProgramMessage::Ready(Instant::now()));
        let response = Response::builder()
            .header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
            .header("lambda-runtime-deadline-ms", "4000000000000")
            .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:bench");
        return Ok(response.body(Full::new(event)).unwrap_or_default());
    }
    let is_answer = path.ends_with("/response");
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let answer = if is_answer { body } else { Bytes::from_static(b"{\"statusCode\":500}") };
    let _ = sender.send(ProgramMessage::Answered(Instant::now(), answer));
    Ok(Response::builder().status(202).body(Full::default()).unwrap_or_default())
}
