//! What a sweep does for a delivery whose wake-up has come.

use super::{Condition, Effect, Progress, Status, Transition};
use crate::schedule::{Schedule, delay_until, overdue_at};
use types::timestamp::Timestamp;

/// A message that a sweep sends, and the transition that it makes afterwards. In this order a crash between the two
/// repeats the message instead of losing it. The copy is void once the other has been handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resending {
    pub delay_seconds: u32,
    /// Whether the message replaces one that is taken for lost. If not, it is the first message of a parked retry.
    pub is_overdue: bool,
    /// Moves the delivery's wake-up.
    pub then: Transition,
}

/// Returns what a sweep does for a delivery, or `None` if there is nothing to do yet or at all.
///
/// The wake-up tells two cases apart. The wake-up of a parked retry lies before its due time, because its message is
/// still to be sent. Any other lies at the due time or after it: then the message should have been sent, and it is
/// taken for lost.
pub fn sweep(schedule: Schedule, seen: &Progress, now: Timestamp) -> Option<Resending> {
    let wake_at = seen.wake_at.filter(|wake_at| *wake_at <= now)?;
    if seen.status != Status::Pending {
        return None;
    }
    let is_overdue = wake_at >= seen.due;
    let delay_seconds = if is_overdue { 0 } else { delay_until(seen.due, now)? };
    let resent = if is_overdue { seen.resent + 1 } else { 0 };
    let then = Transition {
        when: vec![Condition::WakeAt(wake_at), Condition::Status(Status::Pending), Condition::Token(seen.token)],
        then: vec![Effect::WakeAt(Some(overdue_at(schedule, seen.due.max(now), resent))), Effect::Resent(resent)],
    };
    Some(Resending { delay_seconds, is_overdue, then })
}
