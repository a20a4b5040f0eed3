//! What travels in a stream: records, and the changes that happen to them.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A record that travels in a stream and is held by replicas.
pub trait Record: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// Its identifier.
    type Id: Clone + Debug + Ord + Hash + Display + Send + Sync + Serialize + DeserializeOwned;
    /// The stream's name in the table.
    const STREAM: &'static str;

    /// Its identifier.
    fn id(&self) -> Self::Id;

    /// The record in an entity's data.
    fn from_data(data: &str) -> Result<Self, serde_json::Error>;
}

/// What happened to a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<R, I> {
    /// It is now this.
    Put(R),
    /// It is gone.
    Remove(I),
}

/// What happened to a record of a stream.
pub type ChangeOf<R> = Change<R, <R as Record>::Id>;

/// A committed batch: its sequence number and its changes.
pub type Batch<R> = (u64, Vec<ChangeOf<R>>);

/// A change on its way into the table.
#[derive(Clone, Debug)]
pub struct Write<R: Record> {
    /// The entity's version; not newer than what is there means no change.
    pub version: u64,
    /// What replicas learn.
    pub change: ChangeOf<R>,
    /// The entity's data as JSON; none for a removal.
    pub data: Option<String>,
}

impl<R: Record> Write<R> {
    /// The entity that changes.
    pub fn id(&self) -> R::Id {
        match &self.change {
            Change::Put(record) => record.id(),
            Change::Remove(id) => id.clone(),
        }
    }
}
