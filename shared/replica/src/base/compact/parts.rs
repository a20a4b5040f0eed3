//! Puts the objects of a run into the bucket, one after the other, so that only one of them is in memory.

use crate::objects::Objects;
use bytes::Bytes;
use common::store::StoreError;
use market::ObjectRef;
use uuid::Uuid;

use crate::base::columns::Columnar;
use crate::base::part::{self, Packer};

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
