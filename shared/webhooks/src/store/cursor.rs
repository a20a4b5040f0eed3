//! Where a page of an endpoint's deliveries ends, as a text that can be handed out.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use thiserror::Error;

use super::table;
use super::table::{CREATED_AT, PK};
use platform::store::Attributes;
use types::ids::DeliveryId;
use types::timestamp::Timestamp;

/// Where a page begins.
pub type StartKey = HashMap<String, AttributeValue>;

/// The last delivery of a page. Its text is the milliseconds of the delivery's creation and its id. It names no endpoint.
/// So it can only continue a list that its holder may read anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryCursor {
    pub(super) created_at: Timestamp,
    pub(super) id: DeliveryId,
}

/// A text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be the cursor of the page before")]
pub struct DeliveryCursorError;

impl DeliveryCursor {
    /// Reads the key of an entry of an index.
    pub(super) fn from_start_key(key: &StartKey) -> Option<Self> {
        let read = Attributes(key);
        let created_at = read.required_number(CREATED_AT).ok()?;
        Some(Self { created_at: Timestamp::from_millis(created_at), id: read.text(PK).and_then(table::delivery_of)? })
    }
}

impl fmt::Display for DeliveryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created_at.millis(), self.id)
    }
}

impl FromStr for DeliveryCursor {
    type Err = DeliveryCursorError;

    fn from_str(text: &str) -> Result<Self, DeliveryCursorError> {
        let (millis, id) = text.split_once('.').ok_or(DeliveryCursorError)?;
        let created_at = millis.parse().map(Timestamp::from_millis).map_err(|_| DeliveryCursorError)?;
        Ok(Self { created_at, id: id.parse().map_err(|_| DeliveryCursorError)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::store::n;

    const TEXT: &str = "1795169072000.6f9619ff-8b86-d011-b42d-00c04fc964ff";

    #[test]
    fn a_cursor_is_read_back_from_its_text_and_from_its_key() {
        let cursor: DeliveryCursor = TEXT.parse().unwrap();
        assert_eq!(cursor.to_string(), TEXT);
        let mut key = table::delivery(cursor.id);
        key.insert(CREATED_AT.to_owned(), n(cursor.created_at.millis()));
        assert_eq!(DeliveryCursor::from_start_key(&key), Some(cursor));
        for bad in ["", "1795169072000", "soon.6f9619ff-8b86-d011-b42d-00c04fc964ff", "1795169072000.1"] {
            assert_eq!(bad.parse::<DeliveryCursor>(), Err(DeliveryCursorError), "{bad}");
        }
    }
}
