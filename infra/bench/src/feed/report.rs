//! The results, as one document and as a table.

use std::time::Duration;

use local::meter::Bill;
use serde::Serialize;

use crate::cpu::TimeSpent;
use crate::machine::Machine;
use crate::output::{number, table};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct FeedReport {
    pub(super) machine: Machine,
    pub(super) messages: usize,
    pub(super) ways: Vec<WayReport>,
}

/// What was measured of one way for messages to get into the tables.
#[derive(Debug, Serialize)]
pub(super) struct WayReport {
    name: String,
    messages_per_second: f64,
    cpu_us_per_message: f64,
    calls_per_message: f64,
    write_units_per_message: f64,
    bill: Bill,
}

impl WayReport {
    /// Computes the figures per message.
    pub(super) fn new(name: &str, messages: usize, spent: TimeSpent, bill: Bill) -> Self {
        let messages = messages as f64;
        let each = |time: Duration| time.as_secs_f64() / messages;
        Self {
            name: name.to_owned(),
            messages_per_second: 1.0 / each(spent.wall),
            cpu_us_per_message: each(spent.cpu) * 1e6,
            calls_per_message: bill.all_calls() as f64 / messages,
            write_units_per_message: bill.write_units / messages,
            bill,
        }
    }
}

impl FeedReport {
    pub(super) fn table(&self) -> String {
        let header = ["feed", "messages/s", "CPU µs each", "calls each", "write units each"];
        let rows = self.ways.iter().map(|way| {
            [
                way.name.clone(),
                number(way.messages_per_second),
                number(way.cpu_us_per_message),
                format!("{:.2}", way.calls_per_message),
                number(way.write_units_per_message),
            ]
        });
        format!("{}, {} messages\n\n{}", self.machine, self.messages, table(header, rows))
    }
}
