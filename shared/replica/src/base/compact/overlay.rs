//! Lays the last changes over records: those that changed are left out, and what they are now is put between the
//! others.

use std::collections::HashMap;
use std::iter::Peekable;
use std::vec;

use common::store::StoreError;
use market::ObjectRef;

use super::parts::PartWriter;
use crate::base::columns::Columnar;

/// Writes the parts of a base from records and the changes to them, both in its order.
pub(super) struct Overlay<'a, R: Columnar> {
    last: &'a HashMap<R::Id, Option<R>>,
    newer: Peekable<vec::IntoIter<&'a R>>,
    writer: PartWriter<'a, R>,
}

impl<'a, R: Columnar> Overlay<'a, R> {
    /// `last` has the last change to each record that has changed: what it is now, or `None` if it is gone.
    pub(super) fn new(last: &'a HashMap<R::Id, Option<R>>, writer: PartWriter<'a, R>) -> Self {
        let mut newer: Vec<&R> = last.values().flatten().collect();
        newer.sort_unstable_by(|one, other| one.base_order(other));
        Self { last, newer: newer.into_iter().peekable(), writer }
    }

    /// Writes a record, unless it has changed.
    pub(super) async fn push(&mut self, record: R) -> Result<(), StoreError> {
        if self.last.contains_key(&record.id()) {
            return Ok(());
        }
        while let Some(first) = self.newer.next_if(|candidate| candidate.base_order(&record).is_lt()) {
            self.writer.push(first.clone()).await?;
        }
        self.writer.push(record).await
    }

    /// Returns the parts, in order, and how many records they hold.
    pub(super) async fn finish(mut self) -> Result<(Vec<ObjectRef>, u64), StoreError> {
        for record in self.newer {
            self.writer.push(record.clone()).await?;
        }
        self.writer.finish().await
    }
}
