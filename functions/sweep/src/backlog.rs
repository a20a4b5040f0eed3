//! Whether the queues are so far behind that messages are late, and not lost.

use types::timestamp::Timestamp;
use webhooks::delivery::Lane;

use crate::Sweep;

/// A queue whose messages take longer is behind.
const BEHIND_SECONDS: u32 = 5 * 60;

impl Sweep {
    /// Whether a queue is more than five minutes behind, as far as anybody can tell: then sending messages again
    /// would only make it longer.
    ///
    /// SQS does not tell callers how old its messages are. So a probe is sent along with them, and the sender of
    /// webhooks notes when it came out.
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
            tracing::warn!(lane = lane.as_str(), %error, "cannot probe");
        }
        !matches!(probed, Ok(Some(sent_at)) if sent_at >= fresh)
    }
}
