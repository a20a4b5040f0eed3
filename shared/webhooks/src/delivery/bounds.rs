//! What keeps a delivery's row small, however often the delivery is sent again. DynamoDB takes no row of more than
//! 400 KB, and a row that is full can record nothing more.

use super::{Effect, Progress};
use crate::ATTEMPTS;

/// The most attempts that a delivery's row keeps (specification 2.13.1). Of older ones it keeps only the number.
pub const MAX_KEPT_ATTEMPTS: usize = 20;
/// The most rounds of attempts that a delivery can have (specification 6.10.4).
pub const MAX_ROUNDS: u32 = 100;

/// Returns the effects that drop the oldest attempts, if a new round could otherwise record one too many. They are
/// exact only if nothing was recorded since `seen`.
pub(super) fn make_room(seen: &Progress) -> Vec<Effect> {
    let surplus = (seen.attempts.len() + ATTEMPTS as usize).saturating_sub(MAX_KEPT_ATTEMPTS);
    if surplus == 0 {
        return Vec::new();
    }
    let kept = seen.attempts.iter().skip(surplus).cloned().collect();
    vec![Effect::Attempts(kept), Effect::DroppedAttempts(seen.dropped_attempts + surplus)]
}
