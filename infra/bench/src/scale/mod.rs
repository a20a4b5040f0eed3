//! Large markets under the limits of AWS. Most parts run on simulated time: only the limits and latencies of the
//! emulated stores take time there, and computing takes none.

mod compaction;
mod deployment;
mod figures;
mod fill;
mod followers;
mod price;
mod processes;
mod replicas;
pub(crate) mod section;
mod simulation;
mod starts;
mod writes;
mod year;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::cli::ScaleOptions;
use crate::machine::Machine;
use crate::output::Output;
use figures::Figures;
use section::Section;
use simulation::simulated;

pub(crate) use compaction::rebuild;

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct ScaleReport {
    machine: Machine,
    sections: Vec<SectionReport>,
}

#[derive(Debug, Serialize)]
struct SectionReport {
    section: Section,
    /// The size that was asked for. Some sections measure a smaller market, and their texts say so.
    size: u64,
    figures: Value,
}

/// Measures what is asked for and prints the results.
pub(crate) async fn run(options: &ScaleOptions) -> Result<(), String> {
    let output = Output::from_json_flag(options.json);
    let mut report = ScaleReport { machine: Machine::this(), sections: Vec::new() };
    output.part(|| report.machine.to_string());
    let is_asked = |section: &Section| options.only.is_empty() || options.only.contains(section);
    for section in Section::value_variants().iter().copied().filter(is_asked) {
        for &size in section.sizes(&options.sizes) {
            let Figures { text, document } = Box::pin(section.measure(size, options)).await?;
            output.part(|| text);
            report.sections.push(SectionReport { section, size, figures: document });
        }
    }
    output.whole(&report)
}

impl Section {
    /// Returns the sizes to measure. What has a largest size, or does not depend on it, is measured once.
    fn sizes(self, all: &[u64]) -> &[u64] {
        match self {
            Self::Starts | Self::Replicas => all,
            _ => all.get(..1).unwrap_or_default(),
        }
    }

    async fn measure(self, size: u64, options: &ScaleOptions) -> Result<Figures, String> {
        let starts = options.starts;
        match self {
            Self::Starts => simulated(starts::measure(size, starts)).await,
            Self::Processes => processes::measure(size, starts).await,
            Self::Deployment => simulated(deployment::measure(size)).await,
            Self::Writes => simulated(writes::measure()).await,
            Self::Followers => simulated(followers::measure()).await,
            Self::Year => simulated(Box::pin(year::measure(size))).await,
            Self::Replicas => replicas::measure(size).await,
            Self::Compaction => compaction::measure(size, options).await,
        }
    }
}
