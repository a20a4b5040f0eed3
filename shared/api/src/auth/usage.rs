//! How many requests a key made, per UTC day and scope. The counts are attributes of the key's row, and the write that
//! takes a token raises and removes them, so they cost no call.
//!
//! The name of a count is the scope's letter in upper case and the day's number in base 36: `Cg15` counts the catalog's
//! requests of 20 November 2026. The names are short because a write costs twice as much once the row exceeds 1 KB.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use serde::Serialize;

use common::scope::Scope;
use common::store::{Attributes, Row, StoreError};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// The lowest age, in days, at which a count is removed. Today and the six days before stay.
const STALE_AFTER_DAYS: u32 = 7;
/// The ages, in days, of the counts that each write removes from its own scope. So none is left behind by a scope that is
/// used on at least one day of each week.
const REMOVED_AGES_DAYS: RangeInclusive<u32> = STALE_AFTER_DAYS..=13;
const RADIX: u32 = 36;

/// The requests with a key that took a token, on the last days.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The newest day first, then by scope. Requests to `/me` need no scope, and are not counted.
    pub days: Vec<DayUse>,
}

/// The requests of one day that needed this scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DayUse {
    /// The day in UTC, as `YYYY-MM-DD`.
    pub day: String,
    pub scope: Scope,
    pub requests: u64,
}

impl Usage {
    /// Returns how many requests there were on the day of `now`, in all scopes.
    pub fn requests_on_day_of(&self, now: Timestamp) -> u64 {
        let today = date(day_of(now));
        self.days.iter().filter(|day| day.day == today).map(|day| day.requests).sum()
    }

    /// Reads all counts in a key's row. Days before the last seven are among them until a request removes them.
    pub fn from_row(row: &Row) -> Result<Self, StoreError> {
        let mut days = Vec::new();
        for (name, (scope, day)) in row.keys().filter_map(|name| Some((name, scope_and_day(name)?))) {
            let requests: u64 = Attributes(row).required_number(name)?;
            days.push((Reverse(day), scope, requests));
        }
        days.sort_unstable();
        let shown = |(Reverse(day), scope, requests)| DayUse { day: date(day), scope, requests };
        Ok(Self { days: days.into_iter().map(shown).collect() })
    }
}

/// Returns the letter of a scope in the names of its counters.
pub(super) const fn letter(scope: Scope) -> char {
    match scope {
        Scope::CatalogRead => 'c',
        Scope::ListingsRead => 'l',
        Scope::OrdersRead => 'o',
        Scope::WalletRead => 'w',
    }
}

/// Returns the name of the attribute that counts a scope's requests on the day of `now`.
pub(super) fn count(scope: Scope, now: Timestamp) -> String {
    name(scope, day_of(now))
}

/// Returns the names of the counts that a write at `now` removes.
pub(super) fn removed(scope: Scope, now: Timestamp) -> impl Iterator<Item = String> {
    let today = day_of(now);
    REMOVED_AGES_DAYS.map(move |age| name(scope, today.saturating_sub(age)))
}

/// Returns whether an attribute is a count that is no longer kept at `now`.
pub(super) fn is_stale(attribute: &str, now: Timestamp) -> bool {
    scope_and_day(attribute).is_some_and(|(_, day)| day.saturating_add(STALE_AFTER_DAYS) <= day_of(now))
}

fn name(scope: Scope, day: u32) -> String {
    let (mut digits, mut rest) = (Vec::new(), day);
    while rest > 0 {
        digits.extend(char::from_digit(rest % RADIX, RADIX));
        rest /= RADIX;
    }
    std::iter::once(letter(scope).to_ascii_uppercase()).chain(digits.into_iter().rev()).collect()
}

fn scope_and_day(attribute: &str) -> Option<(Scope, u32)> {
    let scope = Scope::ALL.into_iter().find(|scope| attribute.starts_with(letter(*scope).to_ascii_uppercase()))?;
    Some((scope, u32::from_str_radix(attribute.get(1..)?, RADIX).ok()?))
}

/// Whole days since the Unix epoch.
fn day_of(now: Timestamp) -> u32 {
    u32::try_from(now.millis() / DAY_MILLIS).unwrap_or_default()
}

fn date(day: u32) -> String {
    let mut text = Timestamp::from_millis(i64::from(day) * DAY_MILLIS).to_string();
    text.truncate("YYYY-MM-DD".len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::store::{n, s};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_names_are_pinned_and_differ_on_neighbouring_days() {
        let late = at("2026-11-20T23:59:59.999Z");
        let names = Scope::ALL.map(|scope| count(scope, late));
        assert_eq!(names, ["Cg15", "Lg15", "Og15", "Wg15"]);
        assert_eq!(count(Scope::CatalogRead, late.plus_millis(1)), "Cg16");
        for name in names {
            let (scope, day) = scope_and_day(&name).unwrap();
            assert_eq!((count(scope, late), date(day).as_str()), (name, "2026-11-20"));
        }
    }

    #[test]
    fn a_day_is_kept_for_six_more_days_and_then_removed() {
        let (noon, day) = (at("2026-11-20T12:00:00Z"), DAY_MILLIS);
        let then = count(Scope::OrdersRead, noon);
        let is_removed = |age: i64| removed(Scope::OrdersRead, noon.plus_millis(age * day)).any(|name| name == then);
        let ages: Vec<i64> = (0..20).filter(|age| is_removed(*age)).collect();
        assert_eq!(ages, (7..=13).collect::<Vec<i64>>());
        let stale: Vec<i64> = (0..20).filter(|age| is_stale(&then, noon.plus_millis(age * day))).collect();
        assert_eq!(stale, (7..20).collect::<Vec<i64>>());
    }

    #[test]
    fn a_row_shows_the_newest_day_first_and_nothing_but_counts() {
        let row = |count| {
            let attributes = [("Wg15", n(4)), ("Cg16", n(12)), ("Lg16", n(3)), ("uc29919600", n(7)), ("lr", s("Cg15"))];
            let mut row: Row = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            row.insert("Cg15".to_owned(), count);
            row
        };
        let used = |day: &str, scope, requests| DayUse { day: day.to_owned(), scope, requests };
        let days = vec![
            used("2026-11-21", Scope::CatalogRead, 12),
            used("2026-11-21", Scope::ListingsRead, 3),
            used("2026-11-20", Scope::CatalogRead, 5_000_000_000),
            used("2026-11-20", Scope::WalletRead, 4),
        ];
        let usage = Usage::from_row(&row(n(5_000_000_000_u64))).unwrap();
        assert_eq!(usage, Usage { days });
        let on = |at: &str| usage.requests_on_day_of(at.parse().unwrap());
        assert_eq!([on("2026-11-21T23:59:59Z"), on("2026-11-22T00:00:00Z")], [15, 0]);
        assert!(Usage::from_row(&row(s("many"))).is_err());
    }
}
