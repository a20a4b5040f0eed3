//! The results, as one document and as a table.

use serde::Serialize;

use super::binaries::Binaries;
use super::instance::StartTimes;
use crate::machine::Machine;
use crate::output::{megabytes, number, table, text};
use crate::percentiles::Percentiles;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct ColdStartReport {
    pub(super) machine: Machine,
    /// The number of items, and of listings, in the tables.
    pub(super) items: u64,
    pub(super) starts: u64,
    pub(super) programs: Vec<ProgramReport>,
}

/// What was measured of one program.
#[derive(Debug, Serialize)]
pub(super) struct ProgramReport {
    pub(super) name: &'static str,
    /// The size of its file.
    file_bytes: u64,
    /// The time from each start until the program asked for its first event, in milliseconds.
    ready_ms: Vec<f64>,
    /// The time from each start until that event was answered, in milliseconds.
    answered_ms: Vec<f64>,
    warm: Percentiles,
    peak_bytes: u64,
}

impl ProgramReport {
    pub(super) fn new(name: &'static str, binaries: &Binaries) -> Result<Self, String> {
        let file_bytes = std::fs::metadata(binaries.path(name)?).map_err(text)?.len();
        let (ready_ms, answered_ms) = (Vec::new(), Vec::new());
        Ok(Self { name, file_bytes, ready_ms, answered_ms, warm: Percentiles::default(), peak_bytes: 0 })
    }

    /// Adds the measurements of one start.
    pub(super) fn add(&mut self, started: &StartTimes) {
        self.ready_ms.push(started.ready.as_secs_f64() * 1e3);
        self.answered_ms.push(started.answered.as_secs_f64() * 1e3);
        self.peak_bytes = self.peak_bytes.max(started.peak_bytes);
    }

    /// Adds the measurements of a process that went on to answer warm requests.
    pub(super) fn warm(&mut self, started: StartTimes) {
        self.peak_bytes = self.peak_bytes.max(started.peak_bytes);
        self.warm = Percentiles::from_samples(started.warm);
    }
}

impl ColdStartReport {
    pub(super) fn table(&self) -> String {
        let header =
            ["program", "file MB", "ready ms", "first answer ms", "best", "warm p50 ms", "warm p99 ms", "peak MB"];
        let rows = self.programs.iter().map(|program| {
            let best = program.answered_ms.iter().copied().fold(f64::INFINITY, f64::min);
            [
                program.name.to_owned(),
                megabytes(program.file_bytes),
                number(median(&program.ready_ms)),
                format!("{:.1}", median(&program.answered_ms)),
                format!("{best:.1}"),
                format!("{:.2}", program.warm.p50_us / 1e3),
                format!("{:.2}", program.warm.p99_us / 1e3),
                number(program.peak_bytes as f64 / 1e6),
            ]
        });
        let Self { machine, items, starts, .. } = self;
        format!("{machine}, {items} items and as many listings, median of {starts} starts\n\n{}", table(header, rows))
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
    use super::*;

    #[test]
    fn a_median_is_the_middle_whatever_the_order() {
        assert_eq!((median(&[]), median(&[9.0, 1.0, 5.0]), median(&[4.0, 2.0])), (0.0, 5.0, 2.0));
    }
}
