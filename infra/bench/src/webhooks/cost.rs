//! What a delivery costs in calls, units and dollars.

use local::meter::Bill;
use serde::Serialize;

use super::dead::NeverAcknowledged;
use super::throughput::Run;

/// List prices of us-east-1 on 2026-11-21, in dollars per million.
const WRITE_UNIT_DOLLARS_PER_MILLION: f64 = 0.625;
const READ_UNIT_DOLLARS_PER_MILLION: f64 = 0.125;
const QUEUE_CALL_DOLLARS_PER_MILLION: f64 = 0.40;

/// The cost of both ends of a delivery.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    pub(super) delivered_at_once: CostPerDelivery,
    pub(super) never_acknowledged: CostPerDelivery,
}

/// The calls and units of one delivery.
#[derive(Debug, Serialize)]
pub(super) struct CostPerDelivery {
    pub(super) dynamodb_calls: f64,
    pub(super) queue_calls: f64,
    pub(super) read_units: f64,
    pub(super) write_units: f64,
    pub(super) dollars_per_million: f64,
}

impl Cost {
    pub(super) fn new(delivered: &Run, dead: &NeverAcknowledged) -> Self {
        Self {
            delivered_at_once: CostPerDelivery::new(&delivered.bill, delivered.events),
            never_acknowledged: CostPerDelivery::new(&dead.bill, dead.deliveries),
        }
    }
}

impl CostPerDelivery {
    /// Divides a bill among the deliveries that it is for.
    pub(super) fn new(bill: &Bill, deliveries: u64) -> Self {
        let is_of_queues = |name: &str| name.contains("Message") || name.contains("Queue");
        let queues: u64 = bill.calls.iter().filter(|(name, _)| is_of_queues(name)).map(|(_, calls)| calls).sum();
        let each = |value: f64| value / deliveries as f64;
        let dollars = bill.write_units * WRITE_UNIT_DOLLARS_PER_MILLION
            + bill.read_units * READ_UNIT_DOLLARS_PER_MILLION
            + queues as f64 * QUEUE_CALL_DOLLARS_PER_MILLION;
        Self {
            dynamodb_calls: each((bill.all_calls() - queues) as f64),
            queue_calls: each(queues as f64),
            read_units: each(bill.read_units),
            write_units: each(bill.write_units),
            dollars_per_million: each(dollars),
        }
    }
}
