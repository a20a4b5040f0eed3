//! What has to change so that a user's orders fit together again.
//!
//! The records are taken as they are, because nothing else holds the orders themselves. Everything else follows from
//! them: an authority has its record's version, ordinals have no gaps, and summary and hours count the records.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::stored::{StoredOrders, StoredRecord};
use crate::hours::{Hour, Hours};
use crate::summary::Summary;
use common::store::StoreError;
use common::timestamp::Timestamp;

/// What was found of one user, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderFindings {
    /// Orders without an authority, which no message could change.
    pub without_authority: u64,
    /// Orders whose authority had another version than the order itself.
    pub other_version: u64,
    /// Orders with a wrong number in the sequence of inserts.
    pub misnumbered: u64,
    /// Users whose summary was missing, unreadable or did not count what is there.
    pub summaries: u64,
    /// Months whose hours were missing, unreadable or did not count what is there.
    pub hours: u64,
}

impl AddAssign for OrderFindings {
    fn add_assign(&mut self, other: Self) {
        self.without_authority += other.without_authority;
        self.other_version += other.other_version;
        self.misnumbered += other.misnumbered;
        self.summaries += other.summaries;
        self.hours += other.hours;
    }
}

/// What has to change.
pub(super) struct Mending {
    pub(super) orders: Vec<OrderMending>,
    /// The right summary, if it has to be written.
    pub(super) summary: Option<Summary>,
    /// The right hours of months that have others. A month without orders has none.
    pub(super) hours: BTreeMap<String, Option<Hours>>,
    pub(super) found: OrderFindings,
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
    /// Returns what has to change. It is an error if an authority names another account or another time of creation
    /// than the record, because then it cannot be told which of them is right.
    ///
    /// A summary that is written begins a new era, at `now` or later. It is written in any case if `new_era` says so.
    pub(super) fn mending(&self, now: Timestamp, new_era: bool) -> Result<Mending, StoreError> {
        let mut found = OrderFindings::default();
        let (orders, mut expected) = self.orders_and_summary(&mut found)?;
        expected.era = self.era;
        let hours = self.hours_mending()?;
        found.hours = hours.len() as u64;
        let is_right = if expected.total == 0 { !self.has_summary } else { self.summary.as_ref() == Some(&expected) };
        found.summaries = u64::from(!is_right);
        expected.era = u64::try_from(now.millis()).unwrap_or_default().max(self.era + 1);
        let is_wrong = !is_right || found.misnumbered > 0 || !hours.is_empty();
        let is_written = is_wrong || (new_era && expected.total > 0);
        Ok(Mending { orders, summary: is_written.then_some(expected), hours, found })
    }

    fn orders_and_summary(&self, found: &mut OrderFindings) -> Result<(Vec<OrderMending>, Summary), StoreError> {
        let mut inserts: Vec<&StoredRecord> = self.records.iter().collect();
        inserts.sort_by_key(|record| (record.ordinal, &record.position));
        let (mut orders, mut summary) = (Vec::new(), Summary::default());
        for (ordinal, record) in (1..).zip(inserts) {
            summary.insert(record.created_at.month(), record.position.clone());
            let authority = self.authority_mending(record)?;
            let is_misnumbered = record.ordinal != ordinal;
            found.misnumbered += u64::from(is_misnumbered);
            found.without_authority += u64::from(authority == AuthorityMending::Missing);
            found.other_version += u64::from(matches!(authority, AuthorityMending::OtherVersion(_)));
            if is_misnumbered || authority != AuthorityMending::Right {
                orders.push(OrderMending {
                    record: record.clone(),
                    ordinal: is_misnumbered.then_some(ordinal),
                    authority,
                });
            }
        }
        Ok((orders, summary))
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

    /// Counts the hours of each month anew. Returns those that are not as they are stored.
    fn hours_mending(&self) -> Result<BTreeMap<String, Option<Hours>>, StoreError> {
        let mut right = BTreeMap::<String, Hours>::new();
        for record in &self.records {
            right.entry(record.created_at.month()).or_default().insert(Hour::of(&record.position)?);
        }
        let right = right.into_iter().map(|(month, hours)| (month, Some(hours)));
        // A month without orders may still have hours.
        let mut mending: BTreeMap<_, _> = self.hours.keys().map(|month| (month.clone(), None)).chain(right).collect();
        mending.retain(|month, hours| hours.is_none() || self.hours.get(month) != Some(hours));
        Ok(mending)
    }
}
