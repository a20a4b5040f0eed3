//! Writes records in the order of a base: packs them into parts, and lays the last changes over them.

use std::collections::HashMap;
use std::iter::Peekable;
use std::vec;

use bytes::Bytes;
use uuid::Uuid;

use crate::base::columns::Columnar;
use crate::base::part::{self, Packer};
use crate::objects::Objects;
use common::store::StoreError;
use market::ObjectRef;

/// Puts objects of one run under numbers that count up.
pub(super) struct RunObjects<'a> {
    objects: &'a Objects,
    stream: &'static str,
    run: Uuid,
    written: Vec<ObjectRef>,
}

/// Packs records, in their order, into the parts of a base.
pub(super) struct PartWriter<'a, R: Columnar> {
    objects: RunObjects<'a>,
    packer: Packer<R>,
    records: u64,
}

impl<'a> RunObjects<'a> {
    pub(super) const fn new(objects: &'a Objects, stream: &'static str, run: Uuid) -> Self {
        Self { objects, stream, run, written: Vec::new() }
    }

    pub(super) async fn put(&mut self, packed: Vec<u8>) -> Result<(), StoreError> {
        let (key, hash) = (format!("{}/{}/{}", self.stream, self.run, self.written.len()), part::hash(&packed));
        self.objects.put(&key, Bytes::from(packed)).await?;
        self.written.push(ObjectRef { key, hash });
        Ok(())
    }

    /// Returns what was put, in this order.
    pub(super) fn written(self) -> Vec<ObjectRef> {
        self.written
    }
}

impl<'a, R: Columnar> PartWriter<'a, R> {
    pub(super) fn new(objects: RunObjects<'a>) -> Self {
        Self { objects, packer: Packer::default(), records: 0 }
    }

    pub(super) async fn push(&mut self, record: R) -> Result<(), StoreError> {
        self.records += 1;
        if let Some(group) = self.packer.push(record) {
            self.put(&group).await?;
        }
        Ok(())
    }

    /// Returns the parts, in order, and how many records they hold.
    pub(super) async fn finish(mut self) -> Result<(Vec<ObjectRef>, u64), StoreError> {
        let rest = std::mem::take(&mut self.packer).rest();
        if !rest.is_empty() {
            self.put(&rest).await?;
        }
        Ok((self.objects.written(), self.records))
    }

    async fn put(&mut self, group: &[R]) -> Result<(), StoreError> {
        for packed in part::pack(group)? {
            self.objects.put(packed).await?;
        }
        Ok(())
    }
}

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
