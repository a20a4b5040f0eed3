//! The functions' binaries under the Lambda Runtime API: those that the harness builds, or those that were built for
//! Lambda, which may need an emulator. `infra/arm64/run` sets the variables.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::clock::{Clock, SystemClock};
use common::logging::FUNCTION_VARIABLE;
use common::metrics::NAMESPACE_VARIABLE;
use local::environment::Variables;
use local::runtime_api::{self, Step};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::binaries::binary;
use crate::metrics::{LogLine, NAMESPACE};
use crate::secrets;

/// How long a function may take to start, to end or to answer. An emulator takes several times as long as this machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until at least this many seconds are left of the current minute. Binaries run by the real clock.
pub async fn minute_with(seconds: u32) {
    while SystemClock::new().now().seconds_to_next_minute() < seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A function's binary that runs under the Runtime API.
pub struct RuntimeApi {
    api: runtime_api::RuntimeApi,
    child: Child,
    log: tempfile::NamedTempFile,
}

impl RuntimeApi {
    /// Starts the binary of a function with a stack's variables.
    pub async fn run(function: &str, variables: &Variables) -> Self {
        let api = runtime_api::RuntimeApi::start().await.unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let both = log.reopen().unwrap();
        let child = function_command(function)
            .env_clear()
            .envs(variables.iter())
            .env("AWS_LAMBDA_RUNTIME_API", api.address())
            .env(FUNCTION_VARIABLE, function)
            .env(NAMESPACE_VARIABLE, NAMESPACE)
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .stdout(Stdio::from(both.try_clone().unwrap()))
            .stderr(Stdio::from(both))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { api, child, log }
    }

    /// Waits until the function asks for its first event.
    pub async fn ready(&mut self) {
        tokio::select! {
            Ok(Step::Ready(_)) = self.api.step() => {}
            status = self.child.wait() => panic!("the function ended: {status:?}, {}", self.log()),
            () = tokio::time::sleep(PATIENCE) => panic!("the function does not ask for events"),
        }
    }

    /// Waits until the function ends by itself without having asked for an event. Returns the only line of its log.
    pub async fn failed(&mut self) -> Value {
        let status = tokio::select! {
            status = self.child.wait() => status.unwrap(),
            Ok(Step::Ready(_)) = self.api.step() => panic!("the function asks for events: {}", self.log()),
            () = tokio::time::sleep(PATIENCE) => panic!("the function does not end"),
        };
        let log = self.log();
        assert!(!status.success(), "{log}");
        serde_json::from_str(&log).unwrap_or_else(|error| panic!("not one line ({error}): {log}"))
    }

    /// Hands over one event and waits for the function's answer.
    pub async fn invoke(&mut self, event: Value) -> Value {
        self.api.send(&event);
        let answered = async {
            loop {
                if let Step::Answered(_, body) | Step::Failed(body) = self.api.step().await.unwrap() {
                    return serde_json::from_slice(&body).unwrap_or_default();
                }
            }
        };
        tokio::select! {
            answer = answered => answer,
            status = self.child.wait() => panic!("the function ended: {status:?}"),
            () = tokio::time::sleep(PATIENCE) => panic!("the function does not answer"),
        }
    }

    /// Returns what the function has written to standard output and standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Returns the lines of its log so far.
    pub fn lines(&self) -> Vec<LogLine> {
        self.log().lines().map(LogLine::parse).collect()
    }

    /// Returns the most memory that the function's process has had resident, in kilobytes. Under an emulator it is the
    /// emulator's.
    pub fn peak_memory_kb(&self) -> u64 {
        let status = self.process("status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Returns whether the function's process has loaded this library.
    pub fn has_loaded(&self, library: &str) -> bool {
        self.process("maps").contains(library)
    }

    /// Returns what Linux says about the function's process.
    fn process(&self, file: &str) -> String {
        let id = self.child.id().expect("the function runs");
        std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap()
    }
}

/// The folder of functions that were built for Lambda, each as `NAME/bootstrap`. Without it the harness builds them.
const FUNCTIONS_VARIABLE: &str = "MARKETPLACE_FUNCTIONS";
/// The command that runs them, if this machine cannot run them itself. Its words are separated by spaces.
const RUNNER_VARIABLE: &str = "MARKETPLACE_RUNNER";
/// The C compiler for their architecture, with its arguments.
const COMPILER_VARIABLE: &str = "MARKETPLACE_CC";

/// Returns the command that starts a function.
pub(crate) fn function_command(name: &str) -> Command {
    let folder = std::env::var_os(FUNCTIONS_VARIABLE);
    let program = folder.map_or_else(|| binary(name), |folder| Path::new(&folder).join(name).join("bootstrap"));
    if let Some(mut runner) = command(RUNNER_VARIABLE) {
        runner.arg(program);
        return runner;
    }
    Command::new(program)
}

/// Builds the library that leads a function's connections to this machine, in a folder. Returns its path, for
/// `LD_PRELOAD`.
pub async fn redirect_library(folder: &Path) -> String {
    let library = folder.canonicalize().unwrap().join("redirect.so").to_str().unwrap().to_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/redirect.c");
    let mut compiler = command(COMPILER_VARIABLE).unwrap_or_else(|| Command::new("cc"));
    let built = compiler.args(["-shared", "-fPIC", "-o", library.as_str(), source, "-ldl"]).output().await.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

/// Returns the command that a variable holds.
fn command(variable: &str) -> Option<Command> {
    let words = std::env::var(variable).ok()?;
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next()?);
    command.args(words);
    Some(command)
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        secrets::search(self.log().as_bytes(), "the log of a function");
    }
}
