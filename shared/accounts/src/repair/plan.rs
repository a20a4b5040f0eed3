//! What has to change so that a user's orders fit together again.
//!
//! The records are taken as they are, because nothing else holds the orders themselves. Everything else follows from
//! them: an authority has its record's version, ordinals have no gaps, and summary and hours count the records.

use std::collections::BTreeMap;

use super::stored::{StoredOrders, StoredRecord};
use crate::hours::{Hour, Hours};
use crate::summary::Summary;
use common::store::StoreError;
use common::timestamp::Timestamp;

/// What has to be written.
pub(super) struct Mending {
    /// The orders that have to change.
    pub(super) orders: Vec<OrderMending>,
    pub(super) summary: Summary,
    /// The hours of each month. A month without orders has none.
    pub(super) hours: BTreeMap<String, Option<Hours>>,
}

/// An order that has to change.
pub(super) struct OrderMending {
    pub(super) record: StoredRecord,
    /// Its right ordinal, if it has another.
    pub(super) ordinal: Option<u64>,
    pub(super) authority: AuthorityMending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthorityMending {
    Right,
    Missing,
    /// It has this version instead of the record's.
    OtherVersion(u64),
}

impl StoredOrders {
    /// Returns what has to be written. It is an error if an authority names another account or another time of creation
    /// than the record, because then it cannot be told which of them is right.
    ///
    /// The summary begins a new era, at `now` or later, so that instances forget what they remember of these orders.
    pub(super) fn mending(&self, now: Timestamp) -> Result<Mending, StoreError> {
        let mut inserts: Vec<&StoredRecord> = self.records.iter().collect();
        inserts.sort_by_key(|record| (record.ordinal, &record.position));
        let era = u64::try_from(now.millis()).unwrap_or_default().max(self.era + 1);
        let (mut orders, mut summary) = (Vec::new(), Summary { era, ..Summary::default() });
        // A month without orders may still have hours.
        let mut hours: BTreeMap<_, Option<Hours>> = self.months.iter().map(|month| (month.clone(), None)).collect();
        for (ordinal, record) in (1..).zip(inserts) {
            let month = record.created_at.month();
            summary.insert(month.clone(), record.position.clone());
            hours.entry(month).or_default().get_or_insert_default().insert(Hour::of(&record.position)?);
            let (ordinal, authority) =
                (Some(ordinal).filter(|right| record.ordinal != *right), self.authority_mending(record)?);
            if ordinal.is_some() || authority != AuthorityMending::Right {
                orders.push(OrderMending { record: record.clone(), ordinal, authority });
            }
        }
        Ok(Mending { orders, summary, hours })
    }

    fn authority_mending(&self, record: &StoredRecord) -> Result<AuthorityMending, StoreError> {
        let Some(authority) = self.authorities.get(&record.id) else { return Ok(AuthorityMending::Missing) };
        if authority.user != self.user || authority.created_at != record.created_at {
            return Err(StoreError::corrupt(format!("order {}: its authority contradicts its record", record.id)));
        }
        if authority.version == record.version {
            Ok(AuthorityMending::Right)
        } else {
            Ok(AuthorityMending::OtherVersion(authority.version))
        }
    }
}
