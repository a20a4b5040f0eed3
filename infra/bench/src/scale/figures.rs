//! What was measured, for people and for programs.

use std::time::Duration;

use local::aws::limits::Report;
use serde::Serialize;
use serde_json::Value;

use super::price::dollars;
use crate::output::{megabytes, number, table, text};
use crate::percentiles::Percentiles;

/// What a section has measured.
pub(super) struct Figures {
    pub(super) text: String,
    pub(super) document: Value,
}

/// Requests to instances, and what the stores were asked for meanwhile.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    name: String,
    instances: usize,
    latency: Percentiles,
    longest_us: f64,
    /// Requests that were answered by 503.
    unavailable: u64,
    /// Calls that DynamoDB refused.
    refused: usize,
    /// Requests that S3 refused.
    slow_downs: u64,
    read_units: f64,
    gets: u64,
    read_bytes: u64,
    dollars: f64,
}

impl Figures {
    pub(super) fn new<D: Serialize>(document: &D, table: String) -> Result<Self, String> {
        Ok(Self { text: table, document: serde_json::to_value(document).map_err(text)? })
    }
}

impl Requests {
    pub(super) fn new(name: String, instances: usize, taken: Vec<Duration>, unavailable: u64, report: &Report) -> Self {
        Self {
            name,
            instances,
            longest_us: taken.iter().max().map_or(0.0, |longest| longest.as_secs_f64() * 1e6),
            latency: Percentiles::from_samples(taken),
            unavailable,
            refused: report.refused.len(),
            slow_downs: report.objects.refused,
            read_units: report.total().read,
            gets: report.objects.gets,
            read_bytes: report.objects.read_bytes,
            dollars: dollars(report),
        }
    }

    /// Formats requests. What the stores were asked for is divided by the number of instances.
    pub(super) fn table(all: &[Self]) -> String {
        let header = [
            "simulated",
            "p50 ms",
            "p99 ms",
            "longest ms",
            "503",
            "refused",
            "SlowDown",
            "read units each",
            "GETs each",
            "MB each",
            "dollars each",
        ];
        let rows = all.iter().map(|requests| {
            let each = |sum: f64| sum / requests.instances as f64;
            [
                requests.name.clone(),
                number(requests.latency.p50_us / 1e3),
                number(requests.latency.p99_us / 1e3),
                number(requests.longest_us / 1e3),
                requests.unavailable.to_string(),
                requests.refused.to_string(),
                requests.slow_downs.to_string(),
                number(each(requests.read_units)),
                number(each(requests.gets as f64)),
                megabytes(requests.read_bytes / (requests.instances as u64).max(1)),
                format!("{:.7}", each(requests.dollars)),
            ]
        });
        table(header, rows)
    }
}
