//! When a gap in the log counts as one.

use std::time::Duration;

use common::backoff::equal_jitter;

/// The longest pauses between looks at a gap. A transaction that a Query saw in part needs a few milliseconds until all
/// of it shows, and up to some hundred on a bad day. All pauses together fit in the time that a request has.
const GAP_PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(80), Duration::from_millis(320)];

/// Counts the looks at a gap. A Query may see a transaction before an earlier one, so a gap may be none.
#[derive(Debug, Default)]
pub struct GapWatch {
    pauses: usize,
}

impl GapWatch {
    /// Waits before the next look at a gap. Returns false at once if the gap has been seen often enough: then its
    /// entries are lost or have expired.
    pub async fn look_again(&mut self) -> bool {
        let Some(longest) = GAP_PAUSES.get(self.pauses) else { return false };
        self.pauses += 1;
        tokio::time::sleep(equal_jitter(*longest)).await;
        true
    }
}
