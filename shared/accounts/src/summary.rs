//! The summary of a user's orders: how many there are, how many per month, and the positions of the latest inserts.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{Accounts, table};
use common::ids::UserId;
use common::store::{Attributes, Row, StoreError, get_row, n, s};

/// How many of the latest inserts a summary lists by position.
pub const MAX_RECENT_INSERTS: usize = 24;
/// If a read shows an insert, it may still miss this many that came before: those of its own transaction, whose rows show
/// one by one, and those of transactions that came while a page of the Query was read. None is begun before the one before
/// it shows as a whole.
pub(super) const MAX_HIDDEN_INSERTS: u64 = 16;

/// The summary as of one insert. The *n*-th insert makes `total` *n*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// The number of orders, which is also the ordinal of the latest insert.
    pub(super) total: u64,
    /// Orders per month (`YYYY-MM`).
    pub(super) months: BTreeMap<String, u64>,
    /// Positions of the latest inserts, oldest first. The last one has the ordinal `total`.
    pub(super) recent: Vec<String>,
    /// When a repair last numbered the orders anew, in milliseconds since the Unix epoch; 0 if none ever did. What is
    /// remembered of another era says nothing about this one.
    pub(super) era: u64,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Reading begins below this position, because the months and hours from it on are skipped. `None` skips none.
    pub(super) below: Option<String>,
    /// How many orders to skip from there.
    pub(super) skip: usize,
    /// The month in which the page begins, if that is known and the page is not past the end.
    pub(super) month: Option<String>,
}

impl Start {
    /// Begins with the newest order.
    pub(super) const fn newest(skip: usize) -> Self {
        Self { below: None, skip, month: None }
    }
}

impl Summary {
    pub(super) fn insert(&mut self, month: String, position: String) {
        self.total += 1;
        *self.months.entry(month).or_default() += 1;
        self.recent.push(position);
        let surplus = self.recent.len().saturating_sub(MAX_RECENT_INSERTS);
        self.recent.drain(..surplus);
    }

    pub(super) fn orders_in(&self, month: &str) -> u64 {
        self.months.get(month).copied().unwrap_or_default()
    }

    /// Finds the order that has `skip` newer ones. Months that hold only newer orders are skipped whole.
    pub(super) fn start(&self, skip: usize) -> Start {
        let mut left = skip;
        let mut below = None;
        for (month, count) in self.months.iter().rev() {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            if left < count {
                return Start { below, skip: left, month: Some(month.clone()) };
            }
            left -= count;
            below = Some(month.clone());
        }
        Start { below, skip: left, month: None }
    }

    pub(super) fn to_attributes(&self) -> Vec<(&'static str, AttributeValue)> {
        let months = self.months.iter().map(|(month, count)| (month.clone(), n(count))).collect();
        let recent = self.recent.iter().map(s).collect();
        let mut attributes = vec![
            (table::TOTAL, n(self.total)),
            (table::MONTHS, AttributeValue::M(months)),
            (table::RECENT, AttributeValue::L(recent)),
        ];
        if self.era > 0 {
            attributes.push((table::ERA, n(self.era)));
        }
        attributes
    }

    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::SUMMARY_FORMAT.of_row(row)?;
        let corrupt = || StoreError::corrupt("order summary");
        let months = row.get(table::MONTHS).and_then(|value| value.as_m().ok()).ok_or_else(corrupt)?;
        let months = months.keys().map(|month| Some((month.clone(), Attributes(months).number(month)?)));
        let recent = row.get(table::RECENT).and_then(|value| value.as_l().ok()).ok_or_else(corrupt)?;
        Ok(Self {
            total: Attributes(row).required_number(table::TOTAL)?,
            months: months.collect::<Option<_>>().ok_or_else(corrupt)?,
            recent: recent.iter().filter_map(|position| position.as_s().ok()).cloned().collect(),
            era: Attributes(row).optional_number(table::ERA)?.unwrap_or_default(),
        })
    }
}

impl Accounts {
    /// Reads the user's summary. Before the first order it is empty.
    pub(super) async fn summary(&self, user: UserId) -> Result<Summary, StoreError> {
        let row = get_row(&self.client, &self.table, table::summary(user)).await?;
        row.as_ref().map_or_else(|| Ok(Summary::default()), Summary::from_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn skipping_months_lands_where_counting_would(months in prop::collection::vec(1u8..6, 0..60), skip in 0usize..70) {
            let mut summary = Summary::default();
            for month in &months {
                summary.insert(format!("2026-{month:02}"), String::new());
            }
            let mut newest_first = months.clone();
            newest_first.sort_unstable_by(|a, b| b.cmp(a));
            let start = summary.start(skip);
            let kept = newest_first.iter().map(|m| format!("2026-{m:02}"));
            let kept: Vec<_> = kept.filter(|m| start.below.as_ref().is_none_or(|below| m < below)).collect();
            let expected: Vec<_> = newest_first.iter().skip(skip).map(|m| format!("2026-{m:02}")).collect();
            prop_assert_eq!(kept.into_iter().skip(start.skip).collect::<Vec<_>>(), expected);
        }
    }
}
