//! Writes records in the order of a base, and sorts more of them than memory holds.
//!
//! A buffer takes as many records as it may. Once it is full, they are put into the bucket in order, as a *run*. In the
//! end all runs are merged into parts, and the last changes are laid over them.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;
use std::{slice, vec};

use bytes::Bytes;
use uuid::Uuid;

use super::{Compaction, run_id};
use crate::base::columns::{Columnar, Columns};
use crate::base::part::{self, Packer};
use crate::objects::Objects;
use common::store::StoreError;
use market::{ObjectRef, SortedRun};

/// How many runs can be merged in the memory of one buffer, because one part of each is open. With more runs a merge
/// needs more.
const MERGED_RUNS: usize = 32;
/// What the allocations of a record take besides their content.
const ALLOCATION_BYTES: usize = 64;

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

/// Estimates the bytes of memory that a record takes in a vector, which may have room for as many again.
fn memory_bytes<R: Columnar>(record: &R) -> usize {
    let content = postcard::experimental::serialized_size(record).unwrap_or_default();
    2 * size_of::<R>() + content + ALLOCATION_BYTES
}

/// Estimates the bytes of memory that the last change to a record takes in a map.
pub(super) fn word_bytes<R: Columnar>(record: Option<&R>) -> usize {
    record.map_or(ALLOCATION_BYTES, memory_bytes)
}

/// Holds records until they are sorted.
pub(super) struct SortBuffer<R> {
    records: Vec<R>,
    bytes: usize,
    max_bytes: usize,
}

impl<R: Columnar> SortBuffer<R> {
    pub(super) const fn new(max_bytes: usize) -> Self {
        Self { records: Vec::new(), bytes: 0, max_bytes }
    }

    /// Adds a record. Returns whether the buffer is full now.
    pub(super) fn push(&mut self, record: R) -> bool {
        self.bytes += memory_bytes(&record);
        self.records.push(record);
        self.bytes >= self.max_bytes
    }

    /// Takes everything out, in the order of a base.
    pub(super) fn take_sorted(&mut self) -> Vec<R> {
        self.bytes = 0;
        let mut records = std::mem::take(&mut self.records);
        records.sort_unstable_by(R::base_order);
        records
    }
}

/// A run that is being read. One of its parts is in memory.
struct OpenRun<'a, R> {
    parts: slice::Iter<'a, ObjectRef>,
    records: vec::IntoIter<R>,
}

/// The first record that is left of a run. The greatest candidate is the one that comes first in the order of a base.
struct Candidate<R> {
    record: R,
    run: usize,
}

impl<'a, R> OpenRun<'a, R> {
    fn new(run: &'a SortedRun) -> Self {
        Self { parts: run.parts.iter(), records: Vec::new().into_iter() }
    }
}

impl<R: Columnar> Compaction<R> {
    /// Puts sorted records into the bucket. Returns `None` if there are none.
    pub(super) async fn put_run(&self, records: &[R]) -> Result<Option<SortedRun>, StoreError> {
        if records.is_empty() {
            return Ok(None);
        }
        let mut objects = RunObjects::new(&self.objects, R::STREAM, run_id(self.clock.now())?);
        for group in groups(records, self.limits.buffer_bytes / MERGED_RUNS) {
            for packed in part::pack(group)? {
                objects.put(packed).await?;
            }
        }
        Ok(Some(SortedRun { records: records.len() as u64, parts: objects.written() }))
    }

    /// Hands over the records of all runs in the order of a base.
    pub(super) async fn merge(&self, runs: &[SortedRun], base: &mut Overlay<'_, R>) -> Result<(), StoreError> {
        let mut open_runs: Vec<OpenRun<'_, R>> = runs.iter().map(OpenRun::new).collect();
        let mut candidates = BinaryHeap::with_capacity(runs.len());
        for (run, open_run) in open_runs.iter_mut().enumerate() {
            if let Some(record) = self.next_of(open_run).await? {
                candidates.push(Candidate { record, run });
            }
        }
        while let Some(Candidate { record, run }) = candidates.pop() {
            base.push(record).await?;
            if let Some(record) = self.next_of(&mut open_runs[run]).await? {
                candidates.push(Candidate { record, run });
            }
        }
        Ok(())
    }

    /// Takes the next record of a run, and reads the run's next part where one ends.
    async fn next_of(&self, run: &mut OpenRun<'_, R>) -> Result<Option<R>, StoreError> {
        loop {
            if let Some(record) = run.records.next() {
                return Ok(Some(record));
            }
            let Some(part) = run.parts.next() else { return Ok(None) };
            run.records = Box::pin(self.part(part)).await?.records()?.into_iter();
        }
    }
}

/// Divides records into groups. Each takes at most `max_bytes` of memory, unless it is a single record.
fn groups<R: Columnar>(records: &[R], max_bytes: usize) -> Vec<&[R]> {
    let (mut groups, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (index, record) in records.iter().enumerate() {
        let own = memory_bytes(record);
        if index > begin && bytes + own > max_bytes {
            groups.push(&records[begin..index]);
            (begin, bytes) = (index, 0);
        }
        bytes += own;
    }
    groups.push(&records[begin..]);
    groups
}

impl<R: Columnar> Ord for Candidate<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.record.base_order(&self.record)
    }
}

impl<R: Columnar> PartialOrd for Candidate<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Columnar> PartialEq for Candidate<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R: Columnar> Eq for Candidate<R> {}
