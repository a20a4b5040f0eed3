//! Makes sure that a base can be read. Each instance looks once at each piece, so that a damaged one is replaced even
//! when nothing is due.

use std::collections::HashSet;
use std::sync::PoisonError;

use market::{Hash, LogPosition};
use platform::store::StoreError;

use super::Compaction;
use crate::columns::Columnar;
use crate::delta::Delta;
use crate::source::Base;
use crate::tail::LogTail;

impl<R: Columnar> Compaction<R> {
    /// Reads the pieces that this instance does not know yet, one at a time, and the log behind them, which is short.
    pub(super) async fn verify(&self, base: &Base, head: LogPosition) -> Result<(), StoreError> {
        let known = self.sound.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_known = |hash: &Hash| known.as_ref().is_some_and(|known| known.contains(hash));
        for piece in base.parts.iter().filter(|piece| !is_known(&piece.hash)) {
            self.part(piece).await?;
        }
        for piece in base.deltas.iter().filter(|piece| !is_known(&piece.hash)) {
            Delta::<R>::unpack(&piece.read(&self.log, &self.objects).await?)?;
        }
        if !LogTail::new(base.end.seq).read(&self.log, head.seq, usize::MAX).await? {
            return Err(StoreError::corrupt("the log behind the base has a gap"));
        }
        let pieces: HashSet<Hash> = base.parts.iter().chain(&base.deltas).map(|piece| piece.hash).collect();
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) = Some(pieces);
        Ok(())
    }
}
