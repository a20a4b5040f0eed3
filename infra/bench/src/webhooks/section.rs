//! The parts of the measurements of webhooks.

use clap::ValueEnum;

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WebhookSection {
    /// Deliveries per second, CPU time and calls, beside a loop that makes nothing but the calls.
    Throughput,
    /// What each kind of call takes by itself.
    Parts,
    /// How receivers that hang delay others.
    Isolation,
    /// What a delivery costs in calls, units and dollars.
    Cost,
}
