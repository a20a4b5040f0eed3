//! Measures how soon a function answers after its process was started, compared with programs that do no more than
//! Lambda and the AWS SDK require.

mod programs;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::clock::{Clock, SystemClock};
use common::logging::FUNCTION_VARIABLE;
use common::metrics::NAMESPACE_VARIABLE;
use common::records::{PublicItem, PublicListing};
use local::demo::LargeMarket;
use local::runtime_api::{RuntimeApi, Step};
use serde::Serialize;
use serde_json::Value;
use terminal::{Output, number_table};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::cli::ColdStartOptions;
use crate::figures::{Percentiles, bar, megabytes, number, text};
use crate::process::{Machine, Memory};
use crate::stack::{AwsProcess, fill, pack};
use programs::{Events, Programs};

/// A program that sends nothing for this long is taken to hang.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// What a program of the API may answer.
const EXPECTED_STATUSES: [u64; 2] = [200, 404];

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct ColdStartReport {
    machine: Machine,
    /// The number of items, and of listings, in the tables.
    items: u64,
    starts: u64,
    programs: Vec<ProgramReport>,
}

/// What was measured of one program.
#[derive(Debug, Serialize)]
struct ProgramReport {
    name: String,
    /// The size of its file.
    file_bytes: u64,
    /// The time from each start until the program asked for its first event, in milliseconds.
    ready_ms: Vec<f64>,
    /// The time from each start until that event was answered, in milliseconds.
    answered_ms: Vec<f64>,
    warm: Percentiles,
    peak_bytes: u64,
}

/// What was measured of a process.
struct StartTimes {
    /// The time from its start until it asked for its first event.
    ready: Duration,
    /// The time from its start until it had answered that event.
    answered: Duration,
    /// How long each further event took.
    warm: Vec<Duration>,
    /// The most memory that it ever had resident, in bytes.
    peak_bytes: u64,
}

/// Starts every program several times. The programs take turns, so that whatever else the machine does affects all of
/// them alike.
pub(crate) async fn run(options: &ColdStartOptions) -> Result<(), String> {
    let programs = Programs::build()?;
    let aws = AwsProcess::start().await?;
    let market = LargeMarket::new(options.items, SystemClock::new().now());
    fill(&aws.admin()?, &market, &bar("filling the tables", market.size() * 2)).await?;
    pack::<PublicItem>(&aws.environment()?).await?;
    pack::<PublicListing>(&aws.environment()?).await?;
    let events = Events::new(&aws, &market).await?;
    let start = async |name: &str, requests: usize| {
        let started = run_program(programs.path(name)?, &aws, &events.for_program(name), requests).await;
        started.map_err(|error| format!("{name}: {error}"))
    };

    let reports = programs.names.iter().map(|name| ProgramReport::new(name, &programs));
    let mut reports = reports.collect::<Result<Vec<_>, _>>()?;
    let starting = bar("starting programs", options.starts * reports.len() as u64);
    for _ in 0..options.starts {
        for report in &mut reports {
            report.add(&start(&report.name, 0).await?);
            starting.advance(1);
        }
    }
    drop(starting);
    for report in &mut reports {
        report.warm(start(&report.name, options.requests).await?);
    }
    let report =
        ColdStartReport { machine: Machine::this(), items: options.items, starts: options.starts, programs: reports };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    Ok(output.whole(&report)?)
}

/// Starts a program under the Lambda Runtime API, hands it one event and then `more` events, and ends it.
async fn run_program(path: &Path, aws: &AwsProcess, event: &Value, more: usize) -> Result<StartTimes, String> {
    let mut api = RuntimeApi::start().await.map_err(text)?;
    for _ in 0..=more {
        api.send(event);
    }
    let mut command = Command::new(path);
    command
        .env_clear()
        .envs(aws.variables.iter())
        .env("AWS_LAMBDA_RUNTIME_API", api.address())
        .env(FUNCTION_VARIABLE, "bench")
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
    let Step::Ready(handed) = next_step(api, child).await? else {
        return Err("it answers without an event".to_owned());
    };
    match next_step(api, child).await? {
        Step::Answered(at, answer) if is_expected(&answer) => Ok((handed, at)),
        Step::Answered(_, answer) | Step::Failed(answer) => {
            Err(format!("it answers {}", String::from_utf8_lossy(&answer)))
        }
        Step::Ready(_) => Err("it asks again before it has answered".to_owned()),
    }
}

async fn next_step(api: &mut RuntimeApi, child: &mut Child) -> Result<Step, String> {
    tokio::select! {
        step = timeout(STEP_TIMEOUT, api.step()) => step.map_err(|_| "it hangs".to_owned())?.map_err(text),
        status = child.wait() => Err(format!("it has ended: {status:?}")),
    }
}

/// An answer to the API has one of these statuses. Other answers have none.
fn is_expected(answer: &Bytes) -> bool {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    answer["statusCode"].as_u64().is_none_or(|status| EXPECTED_STATUSES.contains(&status))
}

impl ProgramReport {
    fn new(name: &str, programs: &Programs) -> Result<Self, String> {
        let file_bytes = std::fs::metadata(programs.path(name)?).map_err(text)?.len();
        let (ready_ms, answered_ms) = (Vec::new(), Vec::new());
        let warm = Percentiles::default();
        Ok(Self { name: name.to_owned(), file_bytes, ready_ms, answered_ms, warm, peak_bytes: 0 })
    }

    /// Adds the measurements of one start.
    fn add(&mut self, started: &StartTimes) {
        self.ready_ms.push(started.ready.as_secs_f64() * 1e3);
        self.answered_ms.push(started.answered.as_secs_f64() * 1e3);
        self.peak_bytes = self.peak_bytes.max(started.peak_bytes);
    }

    /// Adds the measurements of a process that went on to answer warm requests.
    fn warm(&mut self, started: StartTimes) {
        self.peak_bytes = self.peak_bytes.max(started.peak_bytes);
        self.warm = Percentiles::from_samples(started.warm);
    }
}

impl ColdStartReport {
    fn table(&self) -> String {
        let header = ["program", "file MB", "ready ms", "first answer ms", "warm p50 ms", "warm p99 ms", "peak MB"];
        let rows = self.programs.iter().map(|program| {
            [
                program.name.clone(),
                megabytes(program.file_bytes),
                number(median(&program.ready_ms)),
                format!("{:.1}", median(&program.answered_ms)),
                format!("{:.2}", program.warm.p50_us / 1e3),
                format!("{:.2}", program.warm.p99_us / 1e3),
                megabytes(program.peak_bytes),
            ]
        });
        let Self { machine, items, starts, .. } = self;
        let table = number_table(header, rows);
        format!("{machine}, {items} items and as many listings, median of {starts} starts\n\n{table}")
    }
}

/// Returns the median of samples; the lower of the two middle ones if their number is even.
fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn a_median_is_the_middle_whatever_the_order() {
        assert_eq!((median(&[]), median(&[9.0, 1.0, 5.0]), median(&[4.0, 2.0])), (0.0, 5.0, 2.0));
    }
}
