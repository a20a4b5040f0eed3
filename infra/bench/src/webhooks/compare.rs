//! Compares the functions with those of an older build of this program. Both take turns on this machine.

use std::path::Path;
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::load::Load;
use super::ratios::Ratios;
use super::throughput;
use crate::machine::Machine;
use crate::output::{Output, number, table, text};

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
    throughput: Ways,
}

#[derive(Deserialize)]
struct Ways {
    functions: Figures,
}

/// Runs this build and the older one in turns, and prints the results.
pub(super) async fn run(older: &Path, pairs: u64, load: Load, output: Output) -> Result<(), String> {
    let mut measured = Vec::new();
    for _ in 0..pairs {
        let this = Box::pin(throughput::measure(load)).await?.functions;
        let this = Figures {
            deliveries_per_second: this.deliveries_per_second,
            service_us: this.service_us,
            stores_us: this.stores_us,
        };
        measured.push(Pair::new(this, by_older(older, load).await?));
    }
    let comparison = Comparison {
        machine: Machine::this(),
        rate_ratio: Ratios::new(measured.iter().map(|pair| pair.rate_ratio)),
        service_ratio: Ratios::new(measured.iter().map(|pair| pair.service_ratio)),
        pairs: measured,
    };
    output.part(|| comparison.to_text());
    output.whole(&comparison)
}

/// Runs the older build. If it can measure single parts, it measures no other.
async fn by_older(binary: &Path, load: Load) -> Result<Figures, String> {
    let only: &[&str] =
        if printed(binary, &["--help"]).await?.contains("--only") { &["--only", "throughput"] } else { &[] };
    let (events, endpoints) = (load.events.to_string(), load.endpoints.to_string());
    let options = [only, &["--json", "--events", events.as_str(), "--endpoints", endpoints.as_str()]].concat();
    figures(&printed(binary, &options).await?)
        .ok_or_else(|| format!("{} printed no document with throughput.functions", binary.display()))
}

/// Returns what the webhook benchmark of a build prints.
async fn printed(binary: &Path, options: &[&str]) -> Result<String, String> {
    let mut command = Command::new(binary);
    command.arg("webhooks").args(options).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let failed = |error: std::io::Error| format!("{}: {error}", binary.display());
    let output = command.spawn().map_err(failed)?.wait_with_output().await.map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{} webhooks {}: {}", binary.display(), options.join(" "), output.status));
    }
    String::from_utf8(output.stdout).map_err(text)
}

/// Finds the document. Older builds log to standard output before they print it.
fn figures(printed: &str) -> Option<Figures> {
    let document = printed.lines().rev().find_map(|line| serde_json::from_str::<Document>(line).ok());
    document.map(|document| document.throughput.functions)
}

impl Pair {
    fn new(this: Figures, older: Figures) -> Self {
        Self {
            rate_ratio: this.deliveries_per_second / older.deliveries_per_second,
            service_ratio: this.service_us / older.service_us,
            this,
            older,
        }
    }
}

impl Comparison {
    fn to_text(&self) -> String {
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
            table(header, rows),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_found_behind_lines_of_a_log() {
        let run = r#"{"deliveries_per_second":1354.0,"service_us":468.0,"stores_us":730.0,"events":10}"#;
        let document = format!(r#"{{"machine":{{}},"throughput":{{"functions":{run},"bare":{run}}},"parts":[]}}"#);
        let printed = format!("a line\n{{\"level\":\"WARN\"}}\n{document}\n");
        let best = Figures { deliveries_per_second: 1_354.0, service_us: 468.0, stores_us: 730.0 };
        assert_eq!(figures(&printed), Some(best));
        assert_eq!(figures("a line\n"), None);
    }
}
