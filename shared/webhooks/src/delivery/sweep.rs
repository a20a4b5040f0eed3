//! What a sweep does for a delivery that it finds due to be looked at.

use super::{Change, Condition, Progress, Status, Transition};
use crate::{Schedule, delay_until};
use types::timestamp::Timestamp;

/// A message is taken for lost when so many seconds have passed since it was due.
const OVERDUE_SECONDS: u32 = 5 * 60;
/// The interval doubles with each message that is sent again, so many times: to some 21 hours.
const MAX_DOUBLINGS: u32 = 8;

/// A message that a sweep sends. The transition follows it: a crash between the two repeats the message,
/// which is void once another like it has been handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resending {
    /// How long the message is delayed.
    pub delay_seconds: u32,
    /// Whether the message is taken for lost, and is not one that was never sent.
    pub is_overdue: bool,
    /// When the delivery is looked at next.
    pub then: Transition,
}

/// When a message that is due then must be taken for lost, having been sent again so many times.
pub fn overdue_at(schedule: Schedule, due: Timestamp, resent: u32) -> Timestamp {
    let seconds = i64::from(schedule.scaled(OVERDUE_SECONDS)) << resent.min(MAX_DOUBLINGS);
    due.plus_millis(seconds * 1_000)
}

/// What a sweep does for a delivery; `None` if nothing is to be done, or not yet.
///
/// A retry that is parked has a wake-up before it is due; any other, whose message was sent, after that.
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
        then: vec![Change::WakeAt(Some(overdue_at(schedule, seen.due.max(now), resent))), Change::Resent(resent)],
    };
    Some(Resending { delay_seconds, is_overdue, then })
}
