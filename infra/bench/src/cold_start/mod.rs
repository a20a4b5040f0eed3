//! Measures how soon a function answers after its process was started, compared with programs that do no more than
//! Lambda and the AWS SDK require.

mod instance;
mod programs;

use common::clock::{Clock, SystemClock};
use common::records::{PublicItem, PublicListing};
use local::demo::LargeMarket;
use serde::Serialize;
use terminal::{Output, number_table};

use crate::cli::ColdStartOptions;
use crate::figures::{Percentiles, bar, megabytes, number, text};
use crate::process::Machine;
use crate::stack::{AwsProcess, fill, pack};
use instance::StartTimes;
use programs::{Events, Programs};

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
        let started = instance::start(programs.path(name)?, &aws, &events.for_program(name), requests).await;
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
