//! Metrics, in CloudWatch's embedded metric format. Each request, batch or run writes one log line, and that line is
//! also the metrics document. CloudWatch takes members named in `PascalCase`, which [`Metric`] lists; all other members
//! are for people.
//!
//! The environment variable [`NAMESPACE_VARIABLE`] names the namespace. Without it, lines have no `_aws`, and DynamoDB
//! calls are not counted. There is one dimension, `FunctionName`: Lambda's name for the function, as in Lambda's own
//! metrics. CloudWatch charges for each pair of metric and function, for every hour in which it is published.
//! Therefore a count is published only if it is not zero: missing data means zero.

mod instance;
mod line;
mod meter;
mod metric;

use std::time::Duration;

pub use line::Line;
pub use meter::{Meter, NAMESPACE_VARIABLE};
pub use metric::{Metric, Publishers, Unit};

/// The age and size of the replica that an instance answers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaGauge {
    /// For how long the replica may have been out of date.
    pub age: Duration,
    /// How many records it holds.
    pub records: usize,
}
