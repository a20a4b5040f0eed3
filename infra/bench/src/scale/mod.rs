//! Large markets: cold starts under the limits of AWS, on simulated time, and in real time the CPU time and memory of
//! replicas and of compactions.

pub(crate) mod compaction;
pub(crate) mod replicas;
mod starts;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use terminal::Output;

use crate::cli::{ScaleOptions, ScaleSection};
use crate::figures::Figures;
use crate::process::Machine;

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct ScaleReport {
    machine: Machine,
    sections: Vec<SectionReport>,
}

#[derive(Debug, Serialize)]
struct SectionReport {
    section: ScaleSection,
    size: u64,
    figures: Value,
}

/// Measures what is asked for and prints the results.
pub(crate) async fn run(options: &ScaleOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let mut report = ScaleReport { machine: Machine::this(), sections: Vec::new() };
    output.part(|| report.machine.to_string());
    let is_asked = |section: &ScaleSection| options.only.is_empty() || options.only.contains(section);
    for section in ScaleSection::value_variants().iter().copied().filter(is_asked) {
        for &size in section.sizes(&options.sizes) {
            let Figures { text, document } = Box::pin(section.measure(size, options)).await?;
            output.part(|| text);
            report.sections.push(SectionReport { section, size, figures: document });
        }
    }
    Ok(output.whole(&report)?)
}

impl ScaleSection {
    /// Returns the sizes to measure. A compaction takes long, so only the first market is compacted.
    fn sizes(self, all: &[u64]) -> &[u64] {
        match self {
            Self::Starts | Self::Replicas => all,
            Self::Compaction => all.get(..1).unwrap_or_default(),
        }
    }

    async fn measure(self, size: u64, options: &ScaleOptions) -> Result<Figures, String> {
        match self {
            Self::Starts => starts::measure(size, options.starts).await,
            Self::Replicas => replicas::measure(size).await,
            Self::Compaction => compaction::measure(size, options).await,
        }
    }
}
