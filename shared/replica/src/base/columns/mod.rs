//! Records stored column by column. A base keeps them like this, and replicas build their indexes from it.
//!
//! A value that many records share stands only once, in a dictionary. So reading a million records does not make a
//! million small strings on the way.

pub mod items;
mod listings;

use std::cmp::Ordering;

use indexmap::IndexSet;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use items::ItemColumns;
pub use listings::{ListingColumns, ListingEntry};

use common::layout::Format;
use common::store::StoreError;
use market::Record;

/// A record that a base keeps in columns.
pub trait Columnar: Record {
    /// Many such records, stored column by column.
    type Columns: Columns<Record = Self>;
    /// The format of a packed part of such records. Postcard is positional: the order of the columns is part of it.
    const PART: Format;
    /// The format of a packed delta.
    const DELTA: Format;

    /// The order of records in a base. Records that share the most values stand next to each other.
    fn base_order(&self, other: &Self) -> Ordering;
}

/// Many records of one stream, stored column by column.
pub trait Columns: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    type Record: Columnar;

    /// Adds a record at the end.
    fn push(&mut self, record: &Self::Record);

    fn len(&self) -> usize;

    /// Keeps the records whose id passes the test.
    fn retain(&mut self, keep: impl FnMut(&IdOf<Self>) -> bool);

    /// Returns whether the columns fit together. Check this before you use columns that were read from a part.
    fn is_sound(&self) -> bool;

    /// Returns the records, in the order in which they were added.
    fn records(&self) -> Result<Vec<Self::Record>, StoreError>;

    /// Makes columns from records.
    fn from_records<'a>(records: impl IntoIterator<Item = &'a Self::Record>) -> Self
    where
        Self::Record: 'a,
    {
        let mut columns = Self::default();
        records.into_iter().for_each(|record| columns.push(record));
        columns
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

type IdOf<C> = <<C as Columns>::Record as Record>::Id;

/// Keeps the entries of a column whose place is marked.
fn keep_marked<T>(column: &mut Vec<T>, marks: &[bool]) {
    let mut marks = marks.iter();
    column.retain(|_| marks.next().is_some_and(|mark| *mark));
}

/// The error for a value that is missing from its dictionary or malformed.
fn unreadable(stream: &str) -> StoreError {
    StoreError::corrupt(format!("{stream}: a record of the base"))
}

/// Returns the index of a text in a dictionary. Adds the text if it is missing.
fn number(dictionary: &mut IndexSet<String>, text: &str) -> usize {
    dictionary.get_index_of(text).unwrap_or_else(|| dictionary.insert_full(text.to_owned()).0)
}

/// Reads the value at an index. Returns `Some(None)` if there is no index, and `None` if the value cannot be read.
#[expect(clippy::option_option, reason = "absent and unreadable are two things")]
fn optional<T>(place: Option<usize>, get: impl FnOnce(usize) -> Option<T>) -> Option<Option<T>> {
    place.map_or(Some(None), |place| get(place).map(Some))
}

/// Returns the column entry for an index into a dictionary. The entry 0 stands for no value.
fn entry(place: Option<usize>) -> u32 {
    place.map_or(0, |place| place as u32 + 1)
}

/// Returns the index into a dictionary that a column entry stands for.
fn place(entry: u32) -> Option<usize> {
    (entry as usize).checked_sub(1)
}

/// Returns whether a column has `rows` entries, none of them greater than `dictionary`, the number of values in its
/// dictionary.
fn fits(column: &[u32], rows: usize, dictionary: usize) -> bool {
    column.len() == rows && column.iter().all(|entry| *entry as usize <= dictionary)
}

#[cfg(test)]
mod tests;
