//! The pointer to a stream's base: which run wrote it, its position in the log, and the hashes of its chunks.

use uuid::Uuid;

use super::log::LogPosition;
use super::table;
use crate::Record;
use platform::store::{Attributes, Row, StoreError, b, n, s};
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
    pub(super) fn row<R: Record>(&self) -> Row {
        let mut row = table::base_pointer::<R>();
        row.extend([
            (table::GENERATION.to_owned(), s(self.generation.to_string())),
            (table::SEQ.to_owned(), n(self.position.seq)),
            (table::CHANGES.to_owned(), n(self.position.changes)),
            (table::RECORDS.to_owned(), n(self.records)),
            (table::HASHES.to_owned(), b(self.hashes.concat())),
            (table::WRITTEN_AT.to_owned(), n(self.written_at.millis())),
            (table::SCANNED_AT.to_owned(), n(self.scanned_at.millis())),
        ]);
        row
    }

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
