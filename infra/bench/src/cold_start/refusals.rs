//! Measures what a warm request costs that is refused for its key, or for having none, beside one that is answered:
//! time, CPU time and the length of the log.

use auth::KeyText;
use serde::Serialize;
use serde_json::{Value, json};
use types::clock::{Clock, SystemClock};

use super::binaries::Binaries;
use super::events::Events;
use super::instance;
use crate::aws_side::AwsProcess;
use crate::cli::RefusalsOptions;
use crate::machine::Machine;
use crate::market::GeneratedMarket;
use crate::output::{Output, number, table};
use crate::percentiles::Percentiles;

/// An endpoint that reads nothing but the key.
const PROGRAM: &str = "me";

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct RefusalsReport {
    machine: Machine,
    requests: usize,
    kinds: Vec<KindReport>,
}

/// What was measured of one kind of request, as an average of all.
#[derive(Debug, Serialize)]
struct KindReport {
    name: &'static str,
    status: u64,
    warm: Percentiles,
    cpu_us: f64,
    log_bytes: f64,
}

/// Asks with every kind of request in turn, each in a process of its own, and prints the results.
pub(crate) async fn run(options: &RefusalsOptions) -> Result<(), String> {
    let binaries = Binaries::build()?;
    let aws = AwsProcess::start().await?;
    let market = GeneratedMarket::new(1, SystemClock::new().now());
    let good = Events::new(&aws, &market).await?.for_program(PROGRAM);
    let invented = format!("Bearer {}", KeyText::from_bits([7; 32]).reveal());
    let asked = [
        ("answered", 200, good.clone()),
        ("the same invented key", 401, with_headers(&good, json!({ "authorization": invented }))),
        ("a malformed key", 401, with_headers(&good, json!({ "authorization": "Bearer sk_malformed" }))),
        ("no key", 401, with_headers(&good, json!({}))),
    ];
    let mut kinds = Vec::with_capacity(asked.len());
    for (name, status, event) in asked {
        let started = instance::start(binaries.path(PROGRAM)?, &aws, &event, options.requests, &[status]).await?;
        let each = |total: f64| total / options.requests.max(1) as f64;
        kinds.push(KindReport {
            name,
            status,
            warm: Percentiles::from_samples(started.warm),
            cpu_us: each(started.warm_cpu.as_secs_f64() * 1e6),
            log_bytes: each(started.log_bytes as f64),
        });
    }
    let report = RefusalsReport { machine: Machine::this(), requests: options.requests, kinds };
    let output = Output::from_json_flag(options.json);
    output.part(|| report.table());
    output.whole(&report)
}

fn with_headers(event: &Value, headers: Value) -> Value {
    let mut event = event.clone();
    event["headers"] = headers;
    event
}

impl RefusalsReport {
    fn table(&self) -> String {
        let header = ["request", "status", "p50 ms", "p99 ms", "CPU µs", "log bytes"];
        let rows = self.kinds.iter().map(|kind| {
            [
                kind.name.to_owned(),
                kind.status.to_string(),
                format!("{:.2}", kind.warm.p50_us / 1e3),
                format!("{:.2}", kind.warm.p99_us / 1e3),
                number(kind.cpu_us),
                number(kind.log_bytes),
            ]
        });
        format!("{}, {} requests of each kind\n\n{}", self.machine, self.requests, table(header, rows))
    }
}
