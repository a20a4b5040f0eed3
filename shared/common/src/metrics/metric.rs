//! Every metric that functions publish. What AWS counts by itself, without charge, is not among them.

use crate::closed_enum;
use serde::Serialize;

closed_enum! {
    /// A metric, by its name in CloudWatch.
    pub enum Metric {
        /// Answers with 429.
        RateLimited = "RateLimited",
        /// Commands of the account's settings answered with `unavailable` or `internal`.
        CommandErrors = "CommandErrors",
        /// Attempts of DynamoDB calls beyond the first.
        StoreRetries = "StoreRetries",
        /// How old the state is that an answer came from. Published with every 200, 304 and 503.
        ReplicaLag = "ReplicaLag",
        /// How much of the function's memory an instance has used, at most so far. Published at its start, and whenever
        /// that has grown by 16 MB.
        MemoryUsed = "MemoryUsed",
        /// Messages that were applied.
        Changed = "Changed",
        /// Messages that were not newer than what was there.
        Unchanged = "Unchanged",
        /// Invalid messages. A copy of each lies in the dead-letter queue.
        Refused = "Refused",
        /// Messages put off because what they need is busy or away.
        Postponed = "Postponed",
        /// For each message that was put off, how often that has happened to it by now.
        PostponedTimes = "PostponedTimes",
        /// Messages that the store takes for invalid. A copy of each lies in the dead-letter queue.
        Defects = "Defects",
        /// Messages that stay in their queue, on the way to its dead-letter queue. Also attempts that wait because the
        /// keyring lacks their key.
        Failed = "Failed",
        /// Deliveries that were acknowledged.
        Delivered = "Delivered",
        /// Attempts that failed, last ones included.
        Unacknowledged = "Unacknowledged",
        /// Deliveries whose last attempt failed.
        Exhausted = "Exhausted",
        /// Endpoints that were switched off because of such a delivery.
        SwitchedOff = "SwitchedOff",
        /// Deliveries held because their endpoint is off.
        Held = "Held",
        /// The time from an event's fan-out to the start of its first attempt.
        EventToPost = "EventToPost",
        /// Deliveries that waited until they were no longer kept, and have failed.
        Expired = "Expired",
        /// Drains that were called because something of theirs is due.
        Called = "Called",
        /// Drains that were called again because their message or their run was lost.
        Overdue = "Overdue",
        /// Notices that the sender could not send at once.
        Notices = "Notices",
        /// Shards of the index that a run did not come to the end of.
        Unfinished = "Unfinished",
        /// Rows of the index that cannot be read and were set aside.
        Unreadable = "Unreadable",
        /// Changes behind the base of the catalog, as a run found them.
        CatalogLogBehind = "CatalogLogBehind",
        /// Changes behind the base of the listings, as a run found them.
        ListingsLogBehind = "ListingsLogBehind",
    }
}

/// The unit of a metric's values, by its name in CloudWatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    Count,
    Milliseconds,
    Percent,
}

/// The functions that publish a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishers {
    /// The functions of the API that ask for a key.
    AuthenticatedApi,
    /// Every function that uses a table.
    TableUsers,
    /// The functions of the API that answer from a replica.
    Replicas,
    /// Those, and the one that makes their bases.
    BaseUsers,
    /// The functions with these names.
    Only(&'static [&'static str]),
}

impl Metric {
    /// The unit of its values.
    pub const fn unit(self) -> Unit {
        self.properties().0
    }

    /// The functions that publish it.
    pub const fn publishers(self) -> Publishers {
        self.properties().1
    }

    const fn properties(self) -> (Unit, Publishers) {
        match self {
            Self::CommandErrors => (Unit::Count, Publishers::Only(&["account"])),
            Self::RateLimited => (Unit::Count, Publishers::AuthenticatedApi),
            Self::StoreRetries => (Unit::Count, Publishers::TableUsers),
            Self::ReplicaLag => (Unit::Milliseconds, Publishers::Replicas),
            Self::MemoryUsed => (Unit::Percent, Publishers::BaseUsers),
            Self::Changed | Self::Unchanged | Self::Refused | Self::PostponedTimes => {
                (Unit::Count, Publishers::Only(&["ingest"]))
            }
            Self::Postponed | Self::Defects | Self::Failed => (Unit::Count, Publishers::Only(&["ingest", "webhook"])),
            Self::Delivered
            | Self::Unacknowledged
            | Self::Exhausted
            | Self::SwitchedOff
            | Self::Held
            | Self::Expired => (Unit::Count, Publishers::Only(&["webhook"])),
            Self::EventToPost => (Unit::Milliseconds, Publishers::Only(&["webhook"])),
            Self::Called | Self::Overdue | Self::Notices | Self::Unfinished | Self::Unreadable => {
                (Unit::Count, Publishers::Only(&["sweep"]))
            }
            Self::CatalogLogBehind | Self::ListingsLogBehind => (Unit::Count, Publishers::Only(&["compact"])),
        }
    }
}
