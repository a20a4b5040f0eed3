//! Layouts: the numbers by which a reader tells apart the forms that a stored or queued format has had.
//!
//! Packed bytes begin with their layout. A row has it in an attribute and a JSON message in a member, both named
//! [`LAYOUT`]. Layout 1 is not written there: a row or message without a layout has the first one.
//! CONTRIBUTING.md says when a layout changes, under "Changing stored data".

use std::fmt::Display;

use serde::Deserialize;
use thiserror::Error;

use crate::store::{Attributes, Row, StoreError};

/// The attribute of a row, or the member of a JSON message, that holds its layout. If it is absent, the layout is 1.
pub const LAYOUT: &str = "layout";

/// A format of stored or queued data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// What errors call it.
    pub name: &'static str,
    /// The layout that this release writes.
    pub writes: u8,
    /// The newest layout that this release reads. For one deployment it is ahead of `writes`.
    pub reads: u8,
}

/// A message of a queue that this release cannot read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unreadable message: {0}")]
pub struct UnreadableMessage(String);

#[derive(Deserialize)]
struct Member {
    layout: Option<u32>,
}

impl Format {
    /// Returns the format in its first layout.
    pub const fn first(name: &'static str) -> Self {
        Self { name, writes: 1, reads: 1 }
    }

    /// Returns the layout that was found if this release reads it, and otherwise an error that names it.
    pub fn supported(self, found: u32) -> Result<u32, StoreError> {
        self.known(found).map_err(|problem| self.corrupt(&problem))
    }

    /// Takes the layout off packed bytes, whose first byte it is. Returns it with the rest.
    pub fn split(self, packed: &[u8]) -> Result<(u32, &[u8]), StoreError> {
        let (layout, rest) = packed.split_first().ok_or_else(|| self.corrupt(&"it is empty"))?;
        Ok((self.supported(u32::from(*layout))?, rest))
    }

    /// Returns a row's layout if this release reads it.
    pub fn of_row(self, row: &Row) -> Result<u32, StoreError> {
        if !row.contains_key(LAYOUT) {
            return Ok(1);
        }
        let found = Attributes(row).number(LAYOUT).ok_or_else(|| self.corrupt(&"its layout is not a number"))?;
        self.supported(found)
    }

    /// Returns the layout of a JSON message if this release reads it.
    pub fn of_message(self, message: &str) -> Result<u32, UnreadableMessage> {
        let found: Member = serde_json::from_str(message).map_err(|error| self.unreadable_message(&error))?;
        self.known(found.layout.unwrap_or(1)).map_err(|problem| self.unreadable_message(&problem))
    }

    /// Makes the error for stored data of this format that cannot be read.
    pub fn corrupt(self, what: &dyn Display) -> StoreError {
        StoreError::corrupt(format!("{}: {what}", self.name))
    }

    /// Makes the error for a message of this format that cannot be read.
    pub fn unreadable_message(self, what: &dyn Display) -> UnreadableMessage {
        UnreadableMessage(format!("{}: {what}", self.name))
    }

    fn known(self, found: u32) -> Result<u32, String> {
        match found {
            0 => Err("no release writes layout 0".to_owned()),
            found if found > u32::from(self.reads) => Err(format!("layout {found}, written by a newer release")),
            found => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{n, s};

    const FORMAT: Format = Format { name: "order", writes: 1, reads: 2 };

    fn refused<T: std::fmt::Debug, E: Display>(outcome: Result<T, E>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn every_layout_up_to_the_newest_is_read_and_later_ones_are_refused_by_name() {
        assert_eq!([1, 2].map(|found| FORMAT.supported(found).unwrap()), [1, 2]);
        assert_eq!(refused(FORMAT.supported(3)), "unreadable row: order: layout 3, written by a newer release");
        assert_eq!(refused(FORMAT.supported(0)), "unreadable row: order: no release writes layout 0");
    }

    #[test]
    fn packed_bytes_begin_with_their_layout() {
        assert_eq!(FORMAT.split(&[2, 7, 8]).unwrap(), (2, &[7, 8][..]));
        assert_eq!(refused(FORMAT.split(&[3])), "unreadable row: order: layout 3, written by a newer release");
        assert_eq!(refused(FORMAT.split(&[])), "unreadable row: order: it is empty");
    }

    #[test]
    fn a_row_without_a_layout_has_the_first_one() {
        let row = |layout| Row::from([(LAYOUT.to_owned(), layout)]);
        assert_eq!(FORMAT.of_row(&Row::new()).unwrap(), 1);
        assert_eq!(FORMAT.of_row(&row(n(2))).unwrap(), 2);
        assert!(refused(FORMAT.of_row(&row(n(3)))).ends_with("layout 3, written by a newer release"));
        assert_eq!(refused(FORMAT.of_row(&row(s("2")))), "unreadable row: order: its layout is not a number");
    }

    #[test]
    fn a_message_without_a_layout_has_the_first_one() {
        assert_eq!(FORMAT.of_message(r#"{"type":"attempt"}"#).unwrap(), 1);
        assert_eq!(FORMAT.of_message(r#"{"type":"attempt","layout":2}"#).unwrap(), 2);
        let newer = refused(FORMAT.of_message(r#"{"layout":3}"#));
        assert_eq!(newer, "unreadable message: order: layout 3, written by a newer release");
        assert!(refused(FORMAT.of_message("{")).starts_with("unreadable message: order: EOF"));
    }
}
