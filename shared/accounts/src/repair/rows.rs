//! The rows of orders as a repair reads them, without the orders' data.

use crate::place::Place;
use crate::table;
use platform::store::{Attributes, Row, StoreError};
use types::ids::{OrderId, UserId};
use types::timestamp::Timestamp;

/// An order's record.
#[derive(Clone, Debug)]
pub(super) struct StoredRecord {
    pub(super) id: OrderId,
    pub(super) created_at: Timestamp,
    pub(super) position: String,
    pub(super) ordinal: u64,
    pub(super) version: u64,
}

/// An order's authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAuthority {
    pub(super) id: OrderId,
    pub(super) user: UserId,
    pub(super) created_at: Timestamp,
    pub(super) version: u64,
}

impl StoredRecord {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::ORDER_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let position: String = read.parsed(table::SK)?;
        let place = Place::parse(&position).and_then(|place| Some((place.at, place.id?)));
        let (created_at, id) = place.ok_or_else(|| StoreError::corrupt(table::SK))?;
        Ok(Self {
            id,
            created_at,
            position,
            ordinal: read.required_number(table::ORDINAL)?,
            version: read.required_number(table::VERSION)?,
        })
    }

    pub(super) fn place(&self) -> Place {
        Place::from_order(self.created_at, self.id)
    }
}

impl OrderAuthority {
    pub(super) fn from_row(id: OrderId, row: &Row) -> Result<Self, StoreError> {
        table::AUTHORITY_FORMAT.of_row(row)?;
        let read = Attributes(row);
        Ok(Self {
            id,
            user: read.parsed(table::ACCOUNT)?,
            created_at: Timestamp::from_millis(read.required_number(table::CREATED_AT)?),
            version: read.required_number(table::VERSION)?,
        })
    }

    /// Returns the key of the record that belongs to it.
    pub(super) fn record(&self) -> Row {
        table::order(self.user, &table::order_position(self.created_at, self.id))
    }
}
