//! The adapter that operates the other server: a process that exchanges lines with the benchmark, each of which is one JSON
//! document. `infra/bench/peer/sender.py` describes them.

use std::ops::Range;
use std::process::Stdio;
use std::time::Duration;

use common::clock::{Clock, SystemClock};
use common::ids::UserId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use uuid::Uuid;

use super::stack::{account, event_data};
use crate::figures::text;
use crate::process::ProcessTree;

const BATCH_EVENTS: u64 = 10;
/// The most events that were sent and are not accepted. The functions' feed gets four batches at a time as well.
const MAX_OPEN_EVENTS: u64 = 4 * BATCH_EVENTS;
/// How long the adapter may take for its next line, and to end.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running adapter. It is asked to end when this is dropped, because its standard input ends.
pub(super) struct Adapter {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    lines_read: u64,
    pids: Vec<u32>,
}

/// CPU times so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerCpu {
    /// That of the adapter, without the processes that it has listed.
    pub(super) adapter: Duration,
    /// That of the listed processes, with all that they have started.
    pub(super) processes: Duration,
}

impl Adapter {
    /// Starts a command of the shell and waits until it has made the server ready.
    pub(super) async fn start(command: &str, setup: &Setup<'_>) -> Result<Self, String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = shell.spawn().map_err(text)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (stdin, stdout) = pipes.ok_or("the adapter has no standard input or output")?;
        let lines = BufReader::new(stdout).lines();
        let mut adapter = Self { process, stdin, lines, lines_read: 0, pids: Vec::new() };
        adapter.write(setup).await?;
        let Ready { ready, pids } = adapter.read().await?;
        if !ready {
            return Err(format!("line 1 of the adapter must say that the server is ready, as in {}", Ready::EXAMPLE));
        }
        adapter.pids = pids;
        adapter.cpu()?;
        Ok(adapter)
    }

    /// Hands over events for the accounts in turn, as fast as the adapter accepts them, until it has accepted all.
    pub(super) async fn send(&mut self, events: u64, accounts: u64) -> Result<(), String> {
        let (mut sent, mut accepted) = (0, 0);
        while accepted < events {
            while sent < events && sent + BATCH_EVENTS <= accepted + MAX_OPEN_EVENTS {
                let end = events.min(sent + BATCH_EVENTS);
                self.write(&Events::now(sent..end, accounts)).await?;
                sent = end;
            }
            let more: Accepted = self.read().await?;
            accepted = more.accepted.saturating_add(accepted);
            if accepted > sent {
                return Err(format!(
                    "line {} of the adapter makes {accepted} accepted events, but only {sent} were sent",
                    self.lines_read
                ));
            }
        }
        Ok(())
    }

    /// Returns the CPU times so far. Fails if a listed process does not run.
    pub(super) fn cpu(&self) -> Result<PeerCpu, String> {
        let tree = ProcessTree::now();
        if let Some(missing) = self.pids.iter().find(|id| !tree.has(**id)) {
            return Err(format!("line 1 of the adapter lists process {missing}, which does not run"));
        }
        let adapter = tree.cpu_below(self.process.id().as_slice(), &self.pids);
        Ok(PeerCpu { adapter, processes: tree.cpu_below(&self.pids, &[]) })
    }

    /// Ends the adapter and waits for it.
    pub(super) async fn finish(self) -> Result<(), String> {
        let Self { mut process, stdin, .. } = self;
        drop(stdin);
        let ended = timeout(PATIENCE, process.wait()).await;
        let status = ended.map_err(|_| format!("the adapter did not end within {PATIENCE:?}"))?.map_err(text)?;
        if status.success() { Ok(()) } else { Err(format!("the adapter ended with {status}")) }
    }

    async fn write(&mut self, message: &impl Serialize) -> Result<(), String> {
        let line = serde_json::to_string(message).map_err(text)? + "\n";
        // An adapter that has ended does not read. Its last line says why, and is read next.
        let _ = self.stdin.write_all(line.as_bytes()).await;
        Ok(())
    }

    async fn read<A: Answer>(&mut self) -> Result<A, String> {
        self.lines_read += 1;
        let (number, example) = (self.lines_read, A::EXAMPLE);
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.map_err(|_| format!("the adapter did not write line {number} within {PATIENCE:?}"))?;
        let line = line.map_err(|error| format!("line {number} of the adapter cannot be read: {error}"))?;
        let line = line.ok_or_else(|| format!("the adapter ended before line {number}, such as {example}"))?;
        serde_json::from_str(&line)
            .map_err(|error| format!("line {number} of the adapter is not like {example} ({error}): {line}"))
    }
}

/// The benchmark's first line: the endpoints that the server is to deliver to.
#[derive(Debug, Serialize)]
pub(super) struct Setup<'a> {
    /// The base URL of the receiver.
    receiver: &'a str,
    endpoints: Vec<PeerEndpoint>,
}

#[derive(Debug, Serialize)]
struct PeerEndpoint {
    account: UserId,
    url: String,
}

impl<'a> Setup<'a> {
    /// Gives each of this many accounts an endpoint at the receiver.
    pub(super) fn new(receiver: &'a str, accounts: u64) -> Self {
        let endpoint = |number| PeerEndpoint { account: account(number), url: format!("{receiver}/{number}") };
        Self { receiver, endpoints: (0..accounts).map(endpoint).collect() }
    }
}

/// Each further line of the benchmark: events to deliver.
#[derive(Debug, Serialize)]
struct Events {
    events: Vec<PeerEvent>,
}

#[derive(Debug, Serialize)]
struct PeerEvent {
    id: Uuid,
    account: UserId,
    event: &'static str,
    /// What to POST. It has the same members as a delivery of the functions.
    body: Value,
}

impl Events {
    /// Creates the events with these numbers, which go to the accounts in turn.
    fn now(numbers: Range<u64>, accounts: u64) -> Self {
        let (now, event) = (SystemClock::new().now(), "listing.sold");
        let events = numbers.map(|number| {
            let id = Uuid::new_v4();
            let body = json!({"id": id, "event": event, "created_at": now, "data": event_data()});
            PeerEvent { id, account: account(number % accounts), event, body }
        });
        Self { events: events.collect() }
    }
}

/// A line of an adapter.
trait Answer: DeserializeOwned {
    /// What the line must look like.
    const EXAMPLE: &'static str;
}

/// The adapter's first line: the server runs and knows the endpoints.
#[derive(Debug, Deserialize)]
struct Ready {
    ready: bool,
    /// The processes whose CPU time counts, with all that they start.
    #[serde(default)]
    pids: Vec<u32>,
}

impl Answer for Ready {
    const EXAMPLE: &'static str = r#"{"ready":true,"pids":[12,34]}"#;
}

/// Each further line of the adapter: the server has taken this many more events.
#[derive(Debug, Deserialize)]
struct Accepted {
    accepted: u64,
}

impl Answer for Accepted {
    const EXAMPLE: &'static str = r#"{"accepted":10}"#;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends twenty events to an adapter that is a command of the shell.
    async fn run(command: &str) -> Result<(), String> {
        let mut adapter = Adapter::start(command, &Setup::new("http://127.0.0.1:1", 2)).await?;
        adapter.send(20, 2).await?;
        adapter.cpu()?;
        adapter.finish().await
    }

    #[tokio::test]
    async fn an_adapter_may_accept_batches_in_any_portions() {
        let answers = r#"read setup; echo '{"ready":true}'; read ten; read ten; echo '{"accepted":15}'"#;
        assert_eq!(run(&format!(r#"{answers}; echo '{{"accepted":5}}'; cat"#)).await, Ok(()));
    }

    #[tokio::test]
    async fn a_wrong_line_of_an_adapter_is_named() {
        let ready = r#"read setup; echo '{"ready":true,"pids":['$$']}'"#;
        let cases = [
            ("echo hello".to_owned(), "line 1 of the adapter is not like", "): hello"),
            ("exit 3".to_owned(), "the adapter ended before line 1", r#"{"ready":true,"pids":[12,34]}"#),
            (r#"echo '{"ready":false}'"#.to_owned(), "line 1", "must say that the server is ready"),
            (r#"echo '{"ready":true,"pids":[4294967295]}'; cat"#.to_owned(), "line 1", "4294967295"),
            (format!(r#"{ready}; echo '{{"error":"no room"}}'; cat"#), "line 2", r#"): {"error":"no room"}"#),
            (format!(r#"{ready}; echo '{{"accepted":21}}'; cat"#), "line 2", "only 20 were sent"),
            (format!(r#"{ready}; echo '{{"accepted":10}}'"#), "the adapter ended before line 3", r#"{"accepted":10}"#),
            (format!(r#"{ready}; echo '{{"accepted":20}}'; cat; exit 3"#), "the adapter ended with", "3"),
        ];
        for (command, begin, end) in cases {
            let error = run(&command).await.unwrap_err();
            assert!(error.contains(begin) && error.contains(end), "{command}: {error}");
        }
    }
}
