//! Sorts more records than memory holds. A buffer takes as many as it may. Once it is full, they are put into the
//! bucket in the order of a base, as a *run*. In the end all runs are merged.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::{slice, vec};

use common::store::StoreError;
use market::{ObjectRef, SortedRun};

use super::overlay::Overlay;
use super::parts::RunObjects;
use super::{Compaction, run_id};
use crate::base::columns::{Columnar, Columns};
use crate::base::part;

/// How many runs can be merged in the memory of one buffer, because one part of each is open. With more runs a merge
/// needs more.
const MERGED_RUNS: usize = 32;
/// What the allocations of a record take besides their content.
const ALLOCATION_BYTES: usize = 64;

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
