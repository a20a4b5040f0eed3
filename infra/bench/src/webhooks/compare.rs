//! Compares the functions with those of another build of this program. Both take turns on this machine.

use std::path::Path;
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use terminal::number_table;
use tokio::process::Command;

use super::stack::Load;
use super::throughput::Throughput;
use crate::figures::{Output, Ratios, number, text};
use crate::process::Machine;

/// All turns.
#[derive(Debug, Serialize)]
struct Comparison {
    machine: Machine,
    pairs: Vec<Pair>,
    /// The rate, as a multiple of the older one.
    rate_ratio: Ratios,
    /// The CPU time of the functions without their stores, as a multiple of the older one.
    service_ratio: Ratios,
}

/// A turn of each build.
#[derive(Debug, Serialize)]
struct Pair {
    this: Figures,
    older: Figures,
    rate_ratio: f64,
    service_ratio: f64,
}

/// The best run of the functions, which every build prints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Figures {
    deliveries_per_second: f64,
    service_us: f64,
    stores_us: f64,
}

/// What is read of the document that a build prints.
#[derive(Deserialize)]
struct Document {
    throughput: Best,
}

#[derive(Deserialize)]
struct Best {
    functions: Figures,
}

/// Runs this build and the older one in turns, and prints the results.
pub(super) async fn run(older: &Path, pairs: u64, load: Load, output: Output) -> Result<(), String> {
    let mut measured = Vec::new();
    for _ in 0..pairs {
        let this = Box::pin(Throughput::measure(load)).await?.functions;
        let this = Figures {
            deliveries_per_second: this.deliveries_per_second,
            service_us: this.service_us,
            stores_us: this.stores_us,
        };
        let older = by_older(older, load).await?;
        measured.push(Pair {
            rate_ratio: this.deliveries_per_second / older.deliveries_per_second,
            service_ratio: this.service_us / older.service_us,
            this,
            older,
        });
    }
    let comparison = Comparison {
        machine: Machine::this(),
        rate_ratio: Ratios::new(measured.iter().map(|pair| pair.rate_ratio)),
        service_ratio: Ratios::new(measured.iter().map(|pair| pair.service_ratio)),
        pairs: measured,
    };
    output.part(|| comparison.table());
    output.whole(&comparison)
}

/// Returns what the older build measures.
async fn by_older(binary: &Path, load: Load) -> Result<Figures, String> {
    let (events, endpoints) = (load.events.to_string(), load.endpoints.to_string());
    let mut command = Command::new(binary);
    command.args(["webhooks", "--only", "throughput", "--json", "--events", &events, "--endpoints", &endpoints]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let failed = |error: std::io::Error| format!("{}: {error}", binary.display());
    let output = command.spawn().map_err(failed)?.wait_with_output().await.map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{} webhooks: {}", binary.display(), output.status));
    }
    let document: Document = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("{} printed no document with throughput.functions: {}", binary.display(), text(error))
    })?;
    Ok(document.throughput.functions)
}

impl Comparison {
    fn table(&self) -> String {
        let Self { machine, pairs, rate_ratio, service_ratio } = self;
        let rows = (1_u64..).zip(pairs).map(|(pair, Pair { this, older, rate_ratio, service_ratio })| {
            [
                pair.to_string(),
                number(this.deliveries_per_second),
                number(older.deliveries_per_second),
                format!("{rate_ratio:.2}"),
                number(this.service_us),
                number(older.service_us),
                format!("{service_ratio:.2}"),
            ]
        });
        let header = ["pair", "a second", "older", "ratio", "service CPU µs", "older", "ratio"];
        format!(
            "{machine}\n\n{}\n\nRate: {rate_ratio} times the older one. Service CPU: {service_ratio} times the older one.",
            number_table(header, rows),
        )
    }
}
