//! What the writes to a table have replaced.

use std::collections::{HashMap, HashSet};

use dynoxide::Item;
use types::timestamp::Timestamp;

use crate::aws::limits::flights::RowKey;

/// A row and what it was before a write, or `None` if it was not there.
pub(super) type Undo = (RowKey, Option<Item>);

/// The writes to a table since it has point-in-time recovery.
pub(super) struct Journal {
    pub(super) since: Timestamp,
    writes: Vec<Entry>,
}

struct Entry {
    at: Timestamp,
    rows: Vec<Undo>,
}

impl Journal {
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since, writes: Vec::new() }
    }

    pub(super) fn add(&mut self, at: Timestamp, rows: Vec<Undo>) {
        self.writes.push(Entry { at, rows });
    }

    /// Makes the rows what they were at a moment. Of the last transaction before it, the rows are undone whose number
    /// has a bit in `undone_rows`.
    pub(super) fn go_back(&self, rows: &mut HashMap<RowKey, Item>, to: Timestamp, undone_rows: u64) {
        let first_after = self.writes.partition_point(|entry| entry.at <= to);
        let (before, after) = self.writes.split_at(first_after);
        for (key, old) in after.iter().rev().flat_map(|entry| entry.rows.iter().rev()) {
            undo(rows, key, old.as_ref());
        }
        let Some(last) = before.iter().rposition(|entry| entry.rows.len() > 1) else { return };
        // What was written since to the same rows stays.
        let later: HashSet<&RowKey> =
            before[last + 1..].iter().flat_map(|entry| &entry.rows).map(|(key, _)| key).collect();
        for (number, (key, old)) in before[last].rows.iter().enumerate() {
            let is_undone = number < 64 && (undone_rows >> number) & 1 == 1;
            if is_undone && !later.contains(key) {
                undo(rows, key, old.as_ref());
            }
        }
    }
}

fn undo(rows: &mut HashMap<RowKey, Item>, key: &RowKey, old: Option<&Item>) {
    if let Some(old) = old {
        rows.insert(key.clone(), old.clone());
    } else {
        rows.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynoxide::AttributeValue;

    fn item(value: &str) -> Item {
        Item::from([("pk".to_owned(), AttributeValue::S(value.to_owned()))])
    }

    fn key(name: &str) -> RowKey {
        RowKey::new("table", &item(name))
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Returns the rows `a` and `b` as they were at this time. They were put by one transaction, and `a` was put again.
    fn rows_at(millis: i64, undone_rows: u64) -> [Option<Item>; 2] {
        let mut journal = Journal::new(at(0));
        journal.add(at(1), vec![(key("a"), None), (key("b"), None)]);
        journal.add(at(2), vec![(key("a"), Some(item("first")))]);
        let mut rows = HashMap::from([(key("a"), item("second")), (key("b"), item("first"))]);
        journal.go_back(&mut rows, at(millis), undone_rows);
        ["a", "b"].map(|name| rows.remove(&key(name)))
    }

    #[test]
    fn later_writes_are_undone() {
        assert_eq!(rows_at(2, 0), [Some(item("second")), Some(item("first"))]);
        assert_eq!(rows_at(1, 0), [Some(item("first")), Some(item("first"))]);
        assert_eq!(rows_at(0, 0), [None, None]);
    }

    #[test]
    fn the_last_transaction_is_cut_and_what_came_after_it_stays() {
        assert_eq!(rows_at(1, 0b01), [None, Some(item("first"))]);
        assert_eq!(rows_at(1, 0b10), [Some(item("first")), None]);
        assert_eq!(rows_at(2, 0b11), [Some(item("second")), None]);
    }
}
