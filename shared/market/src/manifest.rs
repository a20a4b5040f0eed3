//! The manifest of a stream's base: which objects of the bucket hold the base and the deltas beside it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::log::LogPosition;
use super::table;
use crate::Record;
use common::store::{Attributes, Row, StoreError, s};
use common::timestamp::Timestamp;

/// SHA-256 of an object.
pub type Hash = [u8; 32];

/// Describes a base that was written completely, and the deltas that continue it.
///
/// It is stored as JSON, so a later release may add members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The run that wrote this manifest.
    pub generation: Uuid,
    /// The parts hold every change up to this position. Parts that were just made from the entities may also hold some
    /// of the changes up to `end`. The deltas have these too.
    pub base: LogPosition,
    /// Parts and deltas together hold every change up to this position, and none after it.
    pub end: LogPosition,
    /// How many records the parts hold.
    pub records: u64,
    /// When the parts were written.
    pub written_at: Timestamp,
    /// When the entities were last read for the base. A base that was folded from another one takes over its time.
    pub scanned_at: Timestamp,
    /// The parts of the base, in its order.
    pub parts: Vec<ObjectRef>,
    /// The deltas, oldest first. Each continues what is before it. It may also repeat a part of that.
    pub deltas: Vec<DeltaRef>,
}

/// A delta. Several may hold the same stretch of the log together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaRef {
    pub object: ObjectRef,
    /// Where the delta's stretch of the log ends.
    pub end: LogPosition,
}

/// An object of the bucket, whose content never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    pub key: String,
    /// Of the whole object.
    #[serde(serialize_with = "hash_to_hex", deserialize_with = "hash_from_hex")]
    pub hash: Hash,
}

impl Manifest {
    /// Returns the objects of the parts, and those of the deltas.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.parts.iter().chain(self.deltas.iter().map(|delta| &delta.object))
    }

    pub(super) fn row<R: Record>(&self) -> Result<Row, StoreError> {
        let mut row = table::manifest::<R>();
        row.insert(table::GENERATION.to_owned(), s(self.generation.to_string()));
        row.insert(table::DATA.to_owned(), s(serde_json::to_string(self)?));
        Ok(row)
    }

    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::MANIFEST_FORMAT.of_row(row)?;
        let data = Attributes(row).text(table::DATA).unwrap_or_default();
        serde_json::from_str(data).map_err(|error| table::MANIFEST_FORMAT.corrupt(&error))
    }
}

fn hash_to_hex<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(hash))
}

fn hash_from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut hash = Hash::default();
    hex::decode_to_slice(text, &mut hash).map_err(D::Error::custom)?;
    Ok(hash)
}
