//! What a limited store refused, and what calls consumed.

use std::collections::BTreeMap;

use super::object_report::ObjectReport;
use super::usage::{Access, Resource, Units, Use};

/// What happened since the last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// How many calls to DynamoDB arrived that the limits apply to. An SDK's retries count as calls.
    pub calls: u64,
    /// What was refused, in order: calls, keys of a `BatchGetItem`, or items of a transaction.
    pub refused: Vec<Refusal>,
    /// The units consumed, by table or index and partition key. Scans have no partition.
    pub consumed: BTreeMap<(Resource, Option<String>), Units>,
    /// What S3 was asked for. Its requests are not among the calls.
    pub objects: ObjectReport,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub operation: String,
    pub resource: Resource,
    /// The partition key of what was refused. A scan has none.
    pub partition: Option<String>,
    pub access: Access,
    pub reason: Reason,
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The throughput of the partition key is used up.
    Partition,
    /// The throughput of the table or index is used up.
    Table,
    /// Another transaction holds the row.
    Conflict,
    /// The same transaction is still under way.
    InProgress,
}

impl Report {
    /// Returns how many were refused for this reason.
    pub fn refused_for(&self, reason: Reason) -> usize {
        self.refused.iter().filter(|refusal| refusal.reason == reason).count()
    }

    /// Returns what one partition of a table consumed, its indexes left out.
    pub fn units(&self, table: &str, partition: &str) -> Units {
        let key = (Resource::table(table), Some(partition.to_owned()));
        self.consumed.get(&key).copied().unwrap_or_default()
    }

    /// Returns what all tables and indexes consumed.
    pub fn total(&self) -> Units {
        let add = |sum: Units, of: &Units| Units { read: sum.read + of.read, write: sum.write + of.write };
        self.consumed.values().fold(Units::default(), add)
    }

    pub(super) fn add(&mut self, used: &Use) {
        if used.units > 0.0 {
            let key = (used.resource.clone(), used.partition.clone());
            self.consumed.entry(key).or_default().add(used.access, used.units);
        }
    }
}

impl Refusal {
    pub(super) fn new(operation: &str, used: &Use, reason: Reason) -> Self {
        Self {
            operation: operation.to_owned(),
            resource: used.resource.clone(),
            partition: used.partition.clone(),
            access: used.access,
            reason,
        }
    }
}
