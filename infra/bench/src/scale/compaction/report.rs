//! What making a base from the entities took.

use std::time::Duration;

use base::RebuildLimits;
use serde::Serialize;

use super::runs::Rebuilt;
use crate::output::{megabytes, number, table};
use crate::scale::figures::Figures;

/// The figures of a market of one size.
#[derive(Debug, Serialize)]
pub(super) struct CompactionFigures {
    /// The number of live listings.
    pub(super) size: u64,
    pub(super) removed: u64,
    /// The size of the tables on disk.
    pub(super) table_bytes: u64,
    /// The function's memory.
    pub(super) memory_mb: usize,
    pub(super) rebuilt: Rebuilt,
}

/// How long reading takes at the pace of a deployed function.
#[derive(Debug, Serialize)]
struct Pace {
    read_units_per_second: u32,
    seconds: f64,
    /// Runs in all, the one that writes the base included.
    runs: u64,
}

#[derive(Serialize)]
struct Document<'f> {
    #[serde(flatten)]
    figures: &'f CompactionFigures,
    pace: Pace,
}

impl CompactionFigures {
    /// Formats the figures.
    pub(super) fn finish(&self) -> Result<Figures, String> {
        let read_units: f64 = self.rebuilt.runs.iter().map(|run| run.read_units).sum();
        let pace = Pace::new(read_units, RebuildLimits::default());
        let text = format!("{}\n\n{}\n\n{}", self.introduction(), self.runs(), self.summary(read_units, &pace));
        Figures::new(&Document { figures: self, pace }, text)
    }

    fn introduction(&self) -> String {
        let Self { size, removed, table_bytes, memory_mb, .. } = self;
        let gigabytes = number(*table_bytes as f64 / 1e9);
        format!(
            "A base from the entities of {size} live and {removed} removed listings, which take {gigabytes} GB in the \
             embedded tables, with the buffer of a function of {memory_mb} MB."
        )
    }

    fn runs(&self) -> String {
        let rows = self.rebuilt.runs.iter().zip(1..).map(|(run, place)| {
            let [cpu, wall] = [run.cpu_ms, run.wall_ms].map(|millis| number(millis / 1e3));
            [place.to_string(), cpu, wall, number(run.read_units)]
        });
        table(["run", "CPU s", "wall s", "read units"], rows)
    }

    fn summary(&self, read_units: f64, pace: &Pace) -> String {
        let Rebuilt { records, parts, objects, object_bytes, peak_bytes, .. } = &self.rebuilt;
        format!(
            "{records} records in {parts} parts. {objects} objects of {} MB were put. The process had at most {} MB of \
             memory.\nAt {} read units a second these {} take {} minutes in {} runs.",
            megabytes(*object_bytes),
            megabytes(*peak_bytes),
            pace.read_units_per_second,
            number(read_units),
            number(pace.seconds / 60.0),
            pace.runs
        )
    }
}

impl Pace {
    /// Computes the pace at these limits. A run that has read for more than half of its time leaves the writing to the
    /// next one.
    fn new(read_units: f64, limits: RebuildLimits) -> Self {
        let RebuildLimits { read_units_per_second, slice, .. } = limits;
        let seconds = read_units / f64::from(read_units_per_second);
        let reading = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_millis();
        let slice = slice.as_millis().max(1);
        let last = if reading % slice > slice / 2 { 2 } else { 1 };
        Self { read_units_per_second, seconds, runs: (reading / slice + last) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_reads_for_long_leaves_the_writing_to_another() {
        let limits =
            RebuildLimits { read_units_per_second: 100, slice: Duration::from_mins(5), ..RebuildLimits::default() };
        let runs = |seconds: f64| Pace::new(seconds * 100.0, limits).runs;
        assert_eq!([0.0, 149.0, 151.0, 300.0, 449.0, 451.0, 600.0].map(runs), [1, 1, 2, 2, 2, 3, 3]);
    }
}
