//! Makes sure that a base can be read. Each instance looks once at each piece, so that a damaged one is replaced even
//! when nothing is due.

use std::collections::HashSet;
use std::sync::PoisonError;

use common::store::StoreError;
use market::{Hash, LogPosition, Manifest};

use super::Compaction;
use crate::base::columns::Columnar;
use crate::base::delta::Delta;
use crate::base::part;
use crate::base::tail::LogTail;

impl<R: Columnar> Compaction<R> {
    /// Reads the pieces that this instance does not know yet, one at a time, and the log behind them, which is short.
    pub(super) async fn verify(&self, base: &Manifest, head: LogPosition) -> Result<(), StoreError> {
        let known = self.sound.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_known = |hash: &Hash| known.as_ref().is_some_and(|known| known.contains(hash));
        for part in base.parts.iter().filter(|part| !is_known(&part.hash)) {
            self.part(part).await?;
        }
        for delta in base.deltas.iter().filter(|delta| !is_known(&delta.object.hash)) {
            Delta::<R>::unpack(&part::read(&delta.object, &self.objects).await?)?;
        }
        if !LogTail::new(base.end.seq).read(&self.log, head.seq, usize::MAX).await? {
            return Err(StoreError::corrupt("the log behind the base has a gap"));
        }
        let sound: HashSet<Hash> = base.objects().map(|object| object.hash).collect();
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) = Some(sound);
        Ok(())
    }
}
