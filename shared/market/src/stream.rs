//! What a stream carries: records, and changes to them. The code of streams is generic over [`Record`].

use std::fmt::{Debug, Display};
use std::hash::Hash;

use common::layout::Format;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A record of a stream. Replicas hold all records of their stream.
pub trait Record: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    type Id: Clone + Debug + Ord + Hash + Display + Send + Sync + Serialize + DeserializeOwned;
    /// The stream's name in the table.
    const STREAM: &'static str;
    /// The format of the stream's packed log entries. Postcard is positional: the order of fields and of enum members
    /// is part of it.
    const LOG_ENTRY: Format;

    fn id(&self) -> Self::Id;

    /// Reads the record from an entity's data.
    fn from_data(data: &str) -> Result<Self, serde_json::Error>;
}

/// What happened to a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<R, I> {
    /// The record was added or replaced.
    Put(R),
    /// The record was removed.
    Remove(I),
}

/// What happened to a record of the stream of `R`.
pub type ChangeOf<R> = Change<R, <R as Record>::Id>;

/// A committed batch: its sequence number and its changes.
pub type Batch<R> = (u64, Vec<ChangeOf<R>>);

/// A change that is to be written to the table.
#[derive(Clone, Debug)]
pub struct Write<R: Record> {
    /// The entity's version. If it is not newer than the stored one, nothing changes.
    pub version: u64,
    /// What replicas are told.
    pub change: ChangeOf<R>,
    /// The entity's data as JSON; `None` for a removal.
    pub data: Option<String>,
}

impl<R: Record> Write<R> {
    /// Returns the id of the entity that changes.
    pub fn id(&self) -> R::Id {
        match &self.change {
            Change::Put(record) => record.id(),
            Change::Remove(id) => id.clone(),
        }
    }
}
