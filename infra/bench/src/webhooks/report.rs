//! The results, as one document and as tables.

use serde::Serialize;

use super::cost::{Cost, CostPerDelivery};
use super::dead::NeverAcknowledged;
use super::hanging_accounts::{BesideHangingAccounts, ENDPOINTS};
use super::isolation::Isolation;
use super::parts::Part;
use super::throughput::{Run, Throughput};
use crate::machine::Machine;
use crate::output::{number, table};
use crate::percentiles::Percentiles;

/// Everything that was measured. Parts that were not asked for are missing.
#[derive(Debug, Serialize)]
pub(super) struct WebhooksReport {
    pub(super) machine: Machine,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) throughput: Option<Throughput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) isolation: Option<Isolation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dead: Option<NeverAcknowledged>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<Cost>,
}

impl WebhooksReport {
    /// Returns a report without any part.
    pub(super) const fn new(machine: Machine) -> Self {
        Self { machine, throughput: None, parts: None, isolation: None, dead: None, cost: None }
    }
}

/// Formats deliveries per second, and what each takes.
pub(super) fn throughput(throughput: &Throughput) -> String {
    let Throughput { stores, functions, bare } = throughput;
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
    let each = CostPerDelivery::new(&functions.bill, functions.events);
    format!(
        "{}, {} events, embedded stores: {stores}\n\n{}\n\nCPU of service and stores: {:.2} times that of the bare loop. Calls each: {:.2} of DynamoDB, {:.2} of SQS.",
        Machine::this(),
        functions.events,
        table(header, rows),
        ratio,
        each.dynamodb_calls,
        each.queue_calls,
    )
}

/// Formats where the time goes. If the throughput was measured, its CPU time stands below the sum.
pub(super) fn parts(parts: &[Part], throughput: Option<&Throughput>) -> String {
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
    let total = |name: &str, service: f64, stores: f64| {
        let none = String::new;
        [name.to_owned(), none(), none(), none(), number(service), number(stores)]
    };
    let sums = total("sum", sum(|part| part.service_us), sum(|part| part.stores_us));
    let measured = throughput.map(|Throughput { functions, .. }| functions);
    let measured = measured.map(|run| total("measured", run.service_us, run.stores_us));
    table(header, rows.chain([sums]).chain(measured))
}

/// Formats whether receivers that hang delay others.
pub(super) fn isolation(isolation: &Isolation) -> String {
    let rows =
        [times("undisturbed", &isolation.undisturbed), times("beside one that hangs", &isolation.beside_a_hanging_one)];
    format!(
        "{}\n\nThe one that hangs had {} attempts meanwhile.\n\n{}",
        table(["event to POST, ms", "p50", "p99", "samples"], rows),
        isolation.hanging_attempts,
        beside_hanging_accounts(&isolation.beside_hanging_accounts),
    )
}

fn beside_hanging_accounts(isolation: &BesideHangingAccounts) -> String {
    let BesideHangingAccounts { undisturbed, disturbed, .. } = isolation;
    let rows = [
        times("first attempts, undisturbed", &undisturbed.first),
        times(&format!("first attempts, beside {ENDPOINTS} that hang"), &disturbed.first),
        times("retries, undisturbed", &undisturbed.retry),
        times(&format!("retries, beside {ENDPOINTS} that hang"), &disturbed.retry),
    ];
    let missing = match undisturbed.missing + disturbed.missing {
        0 => String::new(),
        missing => format!(" {missing} healthy attempts were not there after two minutes, and are not counted."),
    };
    format!(
        "{}\n\np99 beside them: {:.2} times the undisturbed one for first attempts, {:.2} times for retries. Meanwhile {} attempts hung.{missing} The local queue ignores message groups, so this is without the queue's own fairness.",
        table(["late, ms", "p50", "p99", "samples"], rows),
        isolation.first_p99_ratio,
        isolation.retry_p99_ratio,
        isolation.hanging_attempts,
    )
}

fn times(name: &str, times: &Percentiles) -> [String; 4] {
    [name.to_owned(), number(times.p50_us / 1e3), number(times.p99_us / 1e3), times.samples.to_string()]
}

/// Formats calls, units and list prices.
pub(super) fn cost(cost: &Cost) -> String {
    let row = |name: &str, each: &CostPerDelivery| {
        let units = [each.dynamodb_calls, each.queue_calls, each.read_units, each.write_units];
        let [dynamodb, queues, read, write] = units.map(|value| format!("{value:.1}"));
        [name.to_owned(), dynamodb, queues, read, write, format!("{:.2}", each.dollars_per_million)]
    };
    let rows = [row("delivered at once", &cost.delivered_at_once), row("never acknowledged", &cost.never_acknowledged)];
    let header = ["delivery", "DynamoDB calls", "SQS calls", "read units", "write units", "$ per million"];
    table(header, rows)
}
