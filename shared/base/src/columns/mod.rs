//! Records side by side, column by column: how a base keeps them and how an index takes them in.
//!
//! What many records share stands once in a dictionary, so that a million records are read without a
//! million small strings being made on the way.

pub mod items;
mod listings;

use std::cmp::Ordering;

use indexmap::IndexSet;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use items::ItemColumns;
pub use listings::{ListingColumns, ListingRow};

use market::Record;
use platform::store::StoreError;

/// A record that a base keeps in columns.
pub trait Columnar: Record {
    /// Many of them side by side.
    type Columns: Columns<Record = Self>;

    /// The order in which a base keeps records: those that share most lie side by side.
    fn base_order(&self, other: &Self) -> Ordering;
}

/// Many records of one stream.
pub trait Columns: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What they are records of.
    type Record: Columnar;

    /// Adds a record at the end.
    fn push(&mut self, record: &Self::Record);

    /// How many records there are.
    fn len(&self) -> usize;

    /// Keeps the records whose id passes the test.
    fn retain(&mut self, keep: impl FnMut(&IdOf<Self>) -> bool);

    /// Whether the columns fit together; to be asked of what was read before anything else is.
    fn is_sound(&self) -> bool;

    /// The records again, in their order.
    fn records(&self) -> Result<Vec<Self::Record>, StoreError>;

    /// The columns of these records.
    fn from_records<'a>(records: impl IntoIterator<Item = &'a Self::Record>) -> Self
    where
        Self::Record: 'a,
    {
        let mut columns = Self::default();
        records.into_iter().for_each(|record| columns.push(record));
        columns
    }

    /// Whether there are none.
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

/// A value that a dictionary should hold and does not, or that has not its form.
fn unreadable(stream: &str) -> StoreError {
    StoreError::corrupt(format!("{stream}: a record of the base"))
}

/// The place of a text in a dictionary, new if need be.
fn number(dictionary: &mut IndexSet<String>, text: &str) -> usize {
    dictionary.get_index_of(text).unwrap_or_else(|| dictionary.insert_full(text.to_owned()).0)
}

/// What stands at a place, if one is named; nothing at all if it cannot be had.
#[expect(clippy::option_option, reason = "absent and unreadable are two things")]
fn optional<T>(place: Option<usize>, get: impl FnOnce(usize) -> Option<T>) -> Option<Option<T>> {
    place.map_or(Some(None), |place| get(place).map(Some))
}

/// The column entry of a place in a dictionary: 0 stands for none.
fn entry(place: Option<usize>) -> u32 {
    place.map_or(0, |place| place as u32 + 1)
}

/// The place in a dictionary of a column entry.
fn place(entry: u32) -> Option<usize> {
    (entry as usize).checked_sub(1)
}

/// Whether every entry of a column of so many has its place in a dictionary of so many.
fn fits(column: &[u32], rows: usize, dictionary: usize) -> bool {
    column.len() == rows && column.iter().all(|entry| *entry as usize <= dictionary)
}

#[cfg(test)]
mod tests;
