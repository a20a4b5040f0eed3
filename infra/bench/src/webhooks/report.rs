//! The results, as one document and as tables.

use local::meter::Bill;
use serde::Serialize;

use super::dead::NeverAcknowledged;
use super::isolation::Isolation;
use super::parts::Part;
use super::throughput::{Run, Throughput};
use crate::machine::Machine;
use crate::output::{number, table};
use crate::percentiles::Percentiles;

/// List prices of us-east-1 on 2026-11-21, in dollars per million.
const WRITE_UNIT_DOLLARS_PER_MILLION: f64 = 0.625;
const READ_UNIT_DOLLARS_PER_MILLION: f64 = 0.125;
const QUEUE_CALL_DOLLARS_PER_MILLION: f64 = 0.40;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct WebhooksReport {
    pub(super) machine: Machine,
    pub(super) throughput: Throughput,
    pub(super) parts: Vec<Part>,
    pub(super) isolation: Isolation,
    pub(super) dead: NeverAcknowledged,
}

/// Formats deliveries per second, and what each takes.
pub(super) fn throughput(throughput: &Throughput) -> String {
    let Throughput { functions, bare } = throughput;
    let row = |name: &str, run: &Run| {
        [
            name.to_owned(),
            number(run.deliveries_per_second),
            number(run.service_us),
            number(run.stores_us),
            number(run.receiver_us),
        ]
    };
    let header = ["deliveries", "a second", "service CPU µs", "stores CPU µs", "receiver CPU µs"];
    let rows = [row("functions", functions), row("bare loop", bare)];
    let ratio = (functions.service_us + functions.stores_us) / (bare.service_us + bare.stores_us);
    let (dynamodb, queues) = calls(&functions.bill);
    let each = |calls: u64| calls as f64 / functions.events as f64;
    format!(
        "{}, {} events\n\n{}\n\nCPU of service and stores: {:.2} times that of the bare loop. Calls each: {:.2} of DynamoDB, {:.2} of SQS.",
        Machine::this(),
        functions.events,
        table(header, rows),
        ratio,
        each(dynamodb),
        each(queues),
    )
}

/// Formats where the time goes.
pub(super) fn parts(parts: &[Part], throughput: &Throughput) -> String {
    let header = ["of a delivery's CPU µs", "times", "service each", "stores each", "service", "stores"];
    let rows = parts.iter().map(|part| {
        [
            part.name.to_owned(),
            format!("{:.1}", part.per_delivery),
            number(part.service_us),
            number(part.stores_us),
            number(part.service_us * part.per_delivery),
            number(part.stores_us * part.per_delivery),
        ]
    });
    let sum = |value: fn(&Part) -> f64| parts.iter().map(|part| value(part) * part.per_delivery).sum::<f64>();
    let (service, stores) = (sum(|part| part.service_us), sum(|part| part.stores_us));
    let run = &throughput.functions;
    let last = [
        ["sum".to_owned(), String::new(), String::new(), String::new(), number(service), number(stores)],
        [
            "measured".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            number(run.service_us),
            number(run.stores_us),
        ],
    ];
    table(header, rows.chain(last))
}

/// Formats whether a receiver that hangs delays others.
pub(super) fn isolation(isolation: &Isolation) -> String {
    let row = |name: &str, times: &Percentiles| {
        [name.to_owned(), number(times.p50_us / 1e3), number(times.p99_us / 1e3), times.samples.to_string()]
    };
    let rows =
        [row("undisturbed", &isolation.undisturbed), row("beside one that hangs", &isolation.beside_a_hanging_one)];
    format!(
        "{}\n\nThe one that hangs had {} attempts meanwhile.",
        table(["event to POST, ms", "p50", "p99", "samples"], rows),
        isolation.hanging_attempts
    )
}

/// Formats calls, units and list prices.
pub(super) fn cost(throughput: &Throughput, dead: &NeverAcknowledged) -> String {
    let functions = &throughput.functions;
    let row = |name: &str, bill: &Bill, deliveries: u64| {
        let (dynamodb, queues) = calls(bill);
        let each = |value: f64| value / deliveries as f64;
        let price = bill.write_units * WRITE_UNIT_DOLLARS_PER_MILLION
            + bill.read_units * READ_UNIT_DOLLARS_PER_MILLION
            + queues as f64 * QUEUE_CALL_DOLLARS_PER_MILLION;
        [
            name.to_owned(),
            format!("{:.1}", each(dynamodb as f64)),
            format!("{:.1}", each(queues as f64)),
            format!("{:.1}", each(bill.read_units)),
            format!("{:.1}", each(bill.write_units)),
            format!("{:.2}", each(price)),
        ]
    };
    let rows = [
        row("delivered at once", &functions.bill, functions.events),
        row("never acknowledged", &dead.bill, dead.deliveries),
    ];
    let header = ["delivery", "DynamoDB calls", "SQS calls", "read units", "write units", "$ per million"];
    table(header, rows)
}

/// Returns the number of calls to DynamoDB and to SQS.
fn calls(bill: &Bill) -> (u64, u64) {
    let of_queues = |name: &str| name.contains("Message") || name.contains("Queue");
    let queues = bill.calls.iter().filter(|(name, _)| of_queues(name)).map(|(_, calls)| calls).sum();
    (bill.all_calls() - queues, queues)
}
