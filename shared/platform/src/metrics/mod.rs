//! Metrics, in CloudWatch's embedded metric format. Each request, batch or run writes one log line, and that line is
//! also the metrics document. CloudWatch takes members named in `PascalCase`, which [`Metric`] lists; all other members
//! are for people.
//!
//! The environment variable [`NAMESPACE_VARIABLE`] names the namespace. Without it, lines have no `_aws`, and DynamoDB
//! calls are not counted. There is one dimension, `FunctionName`: Lambda's name for the function, as in Lambda's own
//! metrics. CloudWatch charges for each pair of metric and function, for every hour in which it is published.
//! Therefore a count is published only if it is not zero: missing data means zero.
//!
//! | Metric | Unit | Functions | Meaning |
//! |---|---|---|---|
//! | `Latency` | ms | API | how long a request took, refused or not; its sample count is the number of requests |
//! | `ClientErrors` | count | API | 4xx other than 429 |
//! | `RateLimited` | count | API | 429 |
//! | `ServerErrors` | count | API | 5xx |
//! | `StoreCalls` | count | API | DynamoDB calls of a request |
//! | `StoreRetries` | count | all | attempts beyond the first of DynamoDB calls |
//! | `ReplicaLag` | ms | `catalog`, `listings` | the age of the replica, with every 200, 304 and 503 |
//! | `ReplicaRecords` | count | `catalog`, `listings` | how many records it holds, with every 200, 304 and 503 |
//! | `Changed`, `Unchanged` | count | `ingest` | messages that were applied, or not newer than what was there |
//! | `Refused` | count | `ingest` | invalid messages, of which a copy lies in the dead-letter queue |
//! | `Postponed` | count | `ingest`, `webhook` | messages put off because what they need is busy or away |
//! | `PostponedTimes` | count | `ingest` | for each of those, how often it has been put off so far |
//! | `Failed` | count | `ingest`, `webhook` | messages that stay in their queue, on the way to its dead-letter queue |
//! | `Delivered` | count | `webhook` | deliveries that were acknowledged |
//! | `Unacknowledged` | count | `webhook` | attempts that failed, last ones included |
//! | `Exhausted` | count | `webhook` | deliveries whose last attempt failed |
//! | `SwitchedOff` | count | `webhook` | endpoints that were switched off because of that |
//! | `Held` | count | `webhook` | deliveries held because their endpoint is off |
//! | `EventToPost` | ms | `webhook` | from an event's fan-out to the start of its first attempt |
//! | `Parked` | count | `sweep` | parked retries that were put into the queue |
//! | `Overdue` | count | `sweep` | deliveries whose message was taken for lost and sent again |
//! | `Waiting` | count | `sweep` | overdue deliveries whose message was not sent again, because a queue is behind |
//! | `Notices` | count | `sweep` | notices that the sender could not send at once |
//! | `Unfinished` | count | `sweep` | shards of the index that a run did not finish |
//! | `CatalogLogBehind`, `ListingsLogBehind` | count | `compact` | changes behind the base, as a run found them |

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
