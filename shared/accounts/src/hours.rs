//! How many orders of a month were created in each hour. With that, a page deep inside the month is found without
//! reading the orders before it: hours that hold only newer orders are skipped whole.
//!
//! The transaction that inserts orders also counts them in the summary and in the row of their month. So if both count
//! as many orders of the month, they describe the same state. Every inserting transaction requires the summary as it
//! was seen, so the row needs no condition of its own and is never read to write it.
//!
//! The hours that an instance remembers fall behind, and a row may be read before its summary. Then the summary's
//! recent inserts are those that the hours lack. That holds only for hours that were right once. A row that a restore
//! brought back without its last inserts never counts them again. Each transaction also sets how many orders the month
//! has, so such a row contradicts itself from the next insert on, and is not used until a repair.

use std::collections::BTreeMap;

use super::summary::{Start, Summary};
use super::{Accounts, table};
use common::ids::UserId;
use common::store::{Attributes, Row, StoreError, get_row, n};

/// The orders of one month by the hour (UTC) in which they were created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hours {
    counts: BTreeMap<Hour, u64>,
}

/// An hour of a month: a hundred times the day, and the hour of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hour(u16);

impl Hour {
    /// Returns the hour of an order, whose position begins with its time.
    pub(super) fn of(position: &str) -> Result<Self, StoreError> {
        let digits = position.get(8..10).zip(position.get(11..13)).map(|(day, hour)| format!("{day}{hour}"));
        let hour = digits.and_then(|digits| digits.parse().ok());
        hour.map(Self).ok_or_else(|| StoreError::corrupt(format!("position {position}")))
    }

    /// Returns the attribute that counts the orders of this hour.
    pub(super) fn attribute(self) -> String {
        format!("{}{:04}", table::HOUR, self.0)
    }

    fn from_attribute(name: &str) -> Option<Self> {
        let digits = name.strip_prefix(table::HOUR)?;
        let is_hour = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_hour.then(|| digits.parse().ok().map(Self))?
    }

    /// Returns the text with which the positions of the hour's orders begin.
    fn text(self, month: &str) -> String {
        format!("{month}-{:02}T{:02}", self.0 / 100, self.0 % 100)
    }
}

impl Hours {
    pub(super) fn insert(&mut self, hour: Hour) {
        *self.counts.entry(hour).or_default() += 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Hour, u64)> {
        self.counts.iter().map(|(hour, orders)| (*hour, *orders))
    }

    /// Returns the number of orders of the month.
    pub(super) fn orders(&self) -> u64 {
        self.counts.values().fold(0, |sum, orders| sum.saturating_add(*orders))
    }

    /// Inserts what the summary counts beyond these hours. Returns `false`, and changes nothing, if its recent inserts
    /// do not name all of that, or if the hours are ahead of the summary.
    pub(super) fn catch_up(&mut self, summary: &Summary, month: &str) -> bool {
        let missing = summary.orders_in(month).checked_sub(self.orders());
        let Some(missing) = missing.and_then(|missing| usize::try_from(missing).ok()) else { return false };
        let recent = summary.recent.iter().rev().filter(|position| position.starts_with(month));
        let missed: Vec<Hour> = recent.take(missing).filter_map(|position| Hour::of(position).ok()).collect();
        if missed.len() < missing {
            return false;
        }
        for hour in missed {
            self.insert(hour);
        }
        true
    }

    /// Skips hours that hold only orders to skip. Reading begins in this month.
    pub(super) fn narrow(&self, month: &str, mut start: Start) -> Start {
        for (hour, orders) in self.counts.iter().rev() {
            let orders = usize::try_from(*orders).unwrap_or(usize::MAX);
            if start.skip < orders {
                break;
            }
            start.skip -= orders;
            start.below = Some(hour.text(month));
        }
        start
    }

    /// Adds the hours to the key of their row.
    pub(super) fn to_row(&self, mut row: Row) -> Row {
        row.insert(table::ORDERS.to_owned(), n(self.orders()));
        row.extend(self.iter().map(|(hour, orders)| (hour.attribute(), n(orders))));
        row
    }

    /// Returns the hours of a row, or `None` if they do not count as many orders as the row says.
    pub(super) fn from_row(row: &Row) -> Result<Option<Self>, StoreError> {
        table::HOURS_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let counts = row.keys().filter_map(|name| Some((Hour::from_attribute(name)?, name)));
        let counts = counts.map(|(hour, name)| Ok((hour, read.required_number(name)?)));
        let hours = Self { counts: counts.collect::<Result<_, StoreError>>()? };
        Ok((hours.orders() == read.required_number::<u64>(table::ORDERS)?).then_some(hours))
    }
}

impl Accounts {
    /// Reads the hours of a month. There are none if the month has no orders, or if its row cannot be read or contradicts
    /// itself. Pages do without them.
    pub(super) async fn hours(&self, user: UserId, month: &str) -> Result<Option<Hours>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::hours(user, month)).await? else { return Ok(None) };
        Ok(Hours::from_row(&row).unwrap_or_else(|error| {
            tracing::error!(%user, month, %error, "the hours of a month cannot be read");
            None
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::table::order_position;

    const MONTH: &str = "2026-11";

    /// The positions of orders, each once, in the order in which they are inserted. Many share an hour, and some a time.
    fn history() -> impl Strategy<Value = Vec<String>> {
        let orders = prop::collection::vec((1u8..4, 21u8..24, 0u8..3, any::<u8>()), 0..120);
        orders.prop_map(|orders| {
            let mut seen = std::collections::BTreeSet::new();
            let positions = orders.into_iter().map(|(day, hour, minute, id)| {
                let at = format!("2026-11-{day:02}T{hour:02}:{minute:02}:00Z").parse().unwrap();
                order_position(at, Uuid::from_u128(id.into()).into())
            });
            positions.filter(|position| seen.insert(position.clone())).collect()
        })
    }

    fn hours(positions: &[String]) -> Hours {
        let mut hours = Hours::default();
        for position in positions {
            hours.insert(Hour::of(position).unwrap());
        }
        hours
    }

    fn summary(positions: &[String]) -> Summary {
        let mut summary = Summary::default();
        for position in positions {
            summary.insert(MONTH.to_owned(), position.clone());
        }
        summary
    }

    proptest! {
        #[test]
        fn the_hours_find_the_order_that_counting_finds(history in history()) {
            let hours = hours(&history);
            let mut newest_first = history.clone();
            newest_first.sort_unstable_by(|a, b| b.cmp(a));
            for skip in 0..history.len() {
                let start = Start { below: None, skip, month: Some(MONTH.to_owned()) };
                let start = hours.narrow(MONTH, start);
                let is_left = |position: &&String| start.below.as_ref().is_none_or(|below| *position < below);
                let left: Vec<&String> = newest_first.iter().filter(is_left).skip(start.skip).collect();
                prop_assert_eq!(left, newest_first.iter().skip(skip).collect::<Vec<_>>());
                let begins = Hour::of(&newest_first[skip]).unwrap();
                prop_assert!((start.skip as u64) < hours.counts[&begins], "{skip} of {hours:?}");
            }
            prop_assert_eq!(Hours::from_row(&hours.to_row(Row::new())).unwrap(), Some(hours));
        }

        #[test]
        fn hours_catch_up_with_the_recent_inserts_or_not_at_all(history in history(), behind in 0usize..40) {
            let known = history.len().saturating_sub(behind);
            let before = hours(&history[..known]);
            let (mut caught_up, summary) = (before.clone(), summary(&history));
            if caught_up.catch_up(&summary, MONTH) {
                prop_assert_eq!(caught_up, hours(&history));
            } else {
                prop_assert!(history.len() - known > summary.recent.len());
                prop_assert_eq!(caught_up, before);
            }
        }
    }

    #[test]
    fn hours_that_are_ahead_of_a_summary_do_not_describe_it() {
        let position = |hour: u8| format!("2026-11-20T{hour}:00:00.000Z#");
        let mut ahead = hours(&[10, 11].map(position));
        assert!(!ahead.catch_up(&summary(&[position(10)]), MONTH));
    }

    #[test]
    fn a_row_that_counts_other_orders_than_it_says_has_no_hours() {
        let mut row = hours(&["2026-11-20T10:00:00.000Z#".to_owned()]).to_row(Row::new());
        row.extend([("h".to_owned(), n(7)), ("h20101".to_owned(), n(7)), ("history".to_owned(), n(7))]);
        assert!(Hours::from_row(&row).unwrap().is_some(), "an attribute of a later release is not an hour");
        row.insert("h2011".to_owned(), n(1));
        assert_eq!(Hours::from_row(&row).unwrap(), None);
    }
}
