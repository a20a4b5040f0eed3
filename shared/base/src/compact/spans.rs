//! Takes a span of the log into a delta.

use market::{DeltaRef, Manifest, Standing};
use platform::store::StoreError;

use super::parts::RunObjects;
use super::{Compaction, MIN_CHANGES, run_id};
use crate::columns::Columnar;
use crate::delta::Delta;
use crate::snapshot::{end_of, last_changes};
use crate::source::Base;
use crate::tail::LogTail;

/// The most pages of the log in one delta. DynamoDB's pages have at most 1 MB.
const MAX_PAGES: usize = 20;
/// If a base has this many deltas, the next one takes them in.
const MAX_DELTAS: usize = 16;
/// Fewer changes than this fit in one page of the log, whatever their size.
const SMALL_TAIL: u64 = 100;

impl<R: Columnar> Compaction<R> {
    /// Returns whether a delta is due. One is due before the log behind base and deltas gets longer than one page, so
    /// that a start reads at most two: those that came since the last run need the other.
    pub(super) async fn is_delta_due(&self, standing: &Standing) -> Result<bool, StoreError> {
        let (Some(Ok(manifest)), behind) = (&standing.manifest, standing.behind()) else { return Ok(false) };
        if behind > MIN_CHANGES || (behind > 0 && self.is_fold_due(manifest)) {
            return Ok(true);
        }
        Ok(behind > SMALL_TAIL && self.log.since_eventually(manifest.end.seq).await?.1)
    }

    /// Puts a delta beside the base. Returns false if another run has changed the manifest in the meantime.
    pub(super) async fn extend(&self, manifest: &Manifest, standing: &Standing) -> Result<bool, StoreError> {
        let mut tail = LogTail::new(manifest.end.seq);
        if !tail.read(&self.log, standing.head.seq, MAX_PAGES).await? {
            return Err(StoreError::corrupt("the log behind the base has a gap"));
        }
        let batches = tail.take();
        let end = end_of(manifest.end, &batches);
        let newest = last_changes(batches);
        let (mut deltas, last) = if manifest.deltas.len() < MAX_DELTAS {
            (manifest.deltas.clone(), newest)
        } else {
            let mut last = self.last_words(&Base::from_manifest(manifest).deltas).await?;
            last.extend(newest);
            (Vec::new(), last)
        };
        let generation = run_id(self.clock.now())?;
        let mut objects = RunObjects::new(&self.objects, R::STREAM, generation);
        for packed in Delta::<R>::pack(last)? {
            objects.put(packed).await?;
        }
        deltas.extend(objects.written().into_iter().map(|object| DeltaRef { object, end }));
        self.log.put_manifest(&Manifest { generation, end, deltas, ..manifest.clone() }, standing).await
    }
}
