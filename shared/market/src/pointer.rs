//! The pointer to a stream's base in the table, which releases before the manifest wrote: the run, the base's position
//! in the log, and the hashes of its chunks. It is only read, and only where there is no manifest.

use uuid::Uuid;

use super::log::LogPosition;
use super::table;
use platform::store::{Attributes, Row, StoreError};
use types::timestamp::Timestamp;

/// SHA-256 of a packed chunk.
pub type Hash = [u8; 32];

/// Describes a base that was written completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The run that wrote the base. The chunks' keys contain it.
    pub generation: Uuid,
    /// The base holds every change up to this position, and none after it.
    pub position: LogPosition,
    /// How many records the base holds.
    pub records: u64,
    /// The chunks' hashes, in order.
    pub hashes: Vec<Hash>,
    /// When the base was written.
    pub written_at: Timestamp,
    /// When the entities were last read for the base. A base that was folded from another one takes over its time.
    pub scanned_at: Timestamp,
}

impl Pointer {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::BASE_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let time = |name| read.required_number(name).map(Timestamp::from_millis);
        let (hashes, rest) = read.bytes(table::HASHES).unwrap_or_default().as_chunks();
        if !rest.is_empty() {
            return Err(StoreError::corrupt(table::HASHES));
        }
        Ok(Self {
            generation: read.parsed(table::GENERATION)?,
            position: LogPosition {
                seq: read.required_number(table::SEQ)?,
                changes: read.required_number(table::CHANGES)?,
            },
            records: read.required_number(table::RECORDS)?,
            hashes: hashes.to_vec(),
            written_at: time(table::WRITTEN_AT)?,
            scanned_at: time(table::SCANNED_AT)?,
        })
    }
}
