//! What has to change so that a user's orders fit together again.
//!
//! The records are taken as they are, because nothing else holds the orders themselves. Everything else follows from
//! them: an authority has its record's version, ordinals have no gaps, and summary and marks count the records.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::stored::{StoredOrders, StoredRecord};
use crate::marks::Marks;
use crate::summary::{Place, Summary};
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
    /// Months whose marks were unreadable or did not count what is there.
    pub marks: u64,
    /// Busy months without marks, or with too coarse ones. Their pages are right, but slow.
    pub unmarked_months: u64,
}

impl AddAssign for OrderFindings {
    fn add_assign(&mut self, other: Self) {
        self.without_authority += other.without_authority;
        self.other_version += other.other_version;
        self.misnumbered += other.misnumbered;
        self.summaries += other.summaries;
        self.marks += other.marks;
        self.unmarked_months += other.unmarked_months;
    }
}

/// What has to change.
pub(super) struct Mending {
    pub(super) orders: Vec<OrderMending>,
    /// The right summary, if it has to be written.
    pub(super) summary: Option<Summary>,
    pub(super) marks: BTreeMap<String, Marks>,
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
    pub(super) fn mending(&self, block_orders: u64, now: Timestamp, new_era: bool) -> Result<Mending, StoreError> {
        let mut found = OrderFindings::default();
        let (orders, mut expected) = self.orders_and_summary(&mut found)?;
        expected.era = self.era;
        let marks = self.marks_mending(block_orders, &mut found);
        let is_right = if expected.total == 0 { !self.has_summary } else { self.summary.as_ref() == Some(&expected) };
        found.summaries = u64::from(!is_right);
        expected.era = u64::try_from(now.millis()).unwrap_or_default().max(self.era + 1);
        let is_wrong = !is_right || found.misnumbered > 0 || !marks.is_empty();
        let is_written = is_wrong || (new_era && expected.total > 0);
        Ok(Mending { orders, summary: is_written.then_some(expected), marks, found })
    }

    fn orders_and_summary(&self, found: &mut OrderFindings) -> Result<(Vec<OrderMending>, Summary), StoreError> {
        let mut inserts: Vec<&StoredRecord> = self.records.iter().collect();
        inserts.sort_by_key(|record| (record.ordinal, record.place()));
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

    /// Makes marks anew for each month whose marks are wrong or too coarse.
    fn marks_mending(&self, block_orders: u64, found: &mut OrderFindings) -> BTreeMap<String, Marks> {
        let mut months = BTreeMap::<String, Vec<Place>>::new();
        for record in &self.records {
            months.entry(record.created_at.month()).or_default().push(record.place());
        }
        // A month without orders may still have marks.
        for month in self.marks.keys() {
            months.entry(month.clone()).or_default();
        }
        let mut right = BTreeMap::new();
        for (month, places) in months {
            let stored = self.marks.get(&month);
            let exact = stored.and_then(Option::as_ref).filter(|marks| marks.recounted(&places) == **marks);
            let is_wrong = stored.is_some() && exact.is_none();
            let is_coarse = match exact {
                Some(marks) => marks.is_too_coarse(block_orders),
                None => Marks::coarse(places.len() as u64).is_too_coarse(block_orders),
            };
            found.marks += u64::from(is_wrong);
            found.unmarked_months += u64::from(!is_wrong && is_coarse);
            if is_wrong || is_coarse {
                right.insert(month, Marks::of(&places, block_orders));
            }
        }
        right
    }
}
