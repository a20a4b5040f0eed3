//! Checks whether the queues are so far behind that a late message is probably not lost.

use types::timestamp::Timestamp;
use webhooks::delivery::Lane;

use crate::Sweep;

/// A queue is behind if messages take longer than this to come out of it.
const BEHIND_SECONDS: u32 = 5 * 60;

impl Sweep {
    /// Returns whether the queue of the first or the retry lane seems to be more than five minutes behind. Sending
    /// messages again would then only make it longer. The slow lane does not count: what waits
    /// there is late only for accounts whose receivers are slow, and lost messages of others must be found meanwhile.
    ///
    /// SQS does not tell callers how old its messages are. So each check sends a probe through every queue in which
    /// messages wait, and `webhook` records which probe was the latest to come out. A queue is behind if messages wait
    /// in it and no probe of the last five minutes has come out.
    pub(crate) async fn is_behind(&self, now: Timestamp) -> bool {
        let (first, retry) = tokio::join!(self.is_lane_behind(Lane::First, now), self.is_lane_behind(Lane::Retry, now));
        first || retry
    }

    async fn is_lane_behind(&self, lane: Lane, now: Timestamp) -> bool {
        let fresh = now.plus_millis(i64::from(self.schedule.scaled(BEHIND_SECONDS)) * -1_000);
        let (waiting, probed) = tokio::join!(self.queues.waiting(lane), self.store.probed_at(lane));
        if matches!(waiting, Ok(0)) {
            return false;
        }
        if let Err(error) = self.queues.probe(lane, now).await {
            tracing::warn!(lane = lane.as_str(), %error, "cannot send a probe");
        }
        !matches!(probed, Ok(Some(sent_at)) if sent_at >= fresh)
    }
}
