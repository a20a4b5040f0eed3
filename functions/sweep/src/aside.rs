//! Sets rows aside that this release cannot read.

use futures_util::StreamExt;
use futures_util::stream;
use platform::rows::Unreadable;
use platform::store::StoreError;
use types::timestamp::Timestamp;
use webhooks::store::UnreadableWakeUp;

use crate::Sweep;
use crate::swept::Swept;

/// How long an unreadable row is set aside. Then some run looks at it again.
const ASIDE_SECONDS: u32 = 60 * 60;
/// How many wake-ups of a page are moved at the same time.
const CONCURRENCY: usize = 16;

impl Sweep {
    /// Moves the wake-ups of rows that cannot be read, because this release does not know what the rows call for. So
    /// they are not read and reported by each run, and are not in the way of others. The log names each row that was
    /// moved, every time that it is.
    pub(crate) async fn set_aside(&self, unreadable: Vec<UnreadableWakeUp>, now: Timestamp) -> Swept {
        let until = now.plus_millis(i64::from(self.schedule.scaled(ASIDE_SECONDS)) * 1_000);
        let moves = stream::iter(unreadable).map(|row| async move {
            let is_moved = self.store.set_aside(&row.wake_up, until).await?;
            Ok::<_, StoreError>(is_moved.then_some(row.unreadable))
        });
        let mut moves = moves.buffer_unordered(CONCURRENCY);
        let mut swept = Swept::default();
        while let Some(moved) = moves.next().await {
            swept = swept.and(match moved {
                Ok(Some(Unreadable { row, what })) => {
                    tracing::warn!(row, what, "unreadable row");
                    Swept { unreadable: 1, ..Swept::default() }
                }
                Ok(None) => Swept::default(),
                Err(error) => Swept::failure(&error.to_string()),
            });
        }
        swept
    }
}
