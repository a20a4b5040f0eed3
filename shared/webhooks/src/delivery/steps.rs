//! The steps of a delivery's life, each one conditional write.
//!
//! Some conditions look odd. In each of these cases the simpler condition would lose or repeat something in some
//! interleaving of crashes, duplicates and delays. The model checker (`shared/webhooks/tests/transitions.rs`) finds it.

use super::{
    Attempt, Condition, Dispatch, Effect, Failure, LEASE_SECONDS, Lease, MAX_KEPT_ATTEMPTS, MAX_OWNER_ROUNDS_A_DAY,
    OwnerRounds, Progress, Status, Token, Transition, due_now, overdue_at,
};
use crate::{ATTEMPTS, Schedule, Wait};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// How often one attempt can be claimed in order to be sent. The next claim sends nothing: it records the attempt as
/// failed, without a result (specification 6.7.5). So whatever kills the function on this delivery does not do so for
/// ever.
pub const MAX_CLAIMS: u32 = 3;
/// Claims the attempt that a message calls for, under a lease with this id.
pub fn claim(dispatch: &Dispatch, id: Token, now: Timestamp) -> Transition {
    let lease = Lease { id, until: now.plus_millis(LEASE_SECONDS * 1_000) };
    Transition { when: open_to(dispatch, now), then: vec![Effect::Lease(Some(lease)), Effect::Claimed] }
}

/// Claims the attempt as [`claim`] does, and sets a wake-up. This is the step of whoever receives a message that carries
/// a delivery, and finds the delivery stored: somebody else may have claimed it without a wake-up and then crashed.
pub fn claim_watched(dispatch: &Dispatch, id: Token, schedule: Schedule, now: Timestamp) -> Transition {
    let Transition { when, mut then } = claim(dispatch, id, now);
    then.extend(wakes(overdue_at(schedule, now)));
    Transition { when, then }
}

/// Claims the attempt of a delivery whose wake-up has come. This is the step of a drain. Each record of an attempt moves
/// or removes the wake-up, so the condition also says that the attempt is still the one that the drain found.
pub fn claim_due(wake_at: Timestamp, id: Token, now: Timestamp) -> Transition {
    let lease = Lease { id, until: now.plus_millis(LEASE_SECONDS * 1_000) };
    let when = vec![Condition::Status(Status::Pending), Condition::WakeAt(wake_at), Condition::NoLease(now)];
    Transition { when, then: vec![Effect::Lease(Some(lease)), Effect::Claimed] }
}

/// Lets the attempt that a message calls for wait for the drain of its account.
pub fn wait(dispatch: &Dispatch, now: Timestamp) -> Transition {
    Transition { when: open_to(dispatch, now), then: wakes(now).to_vec() }
}

/// Gives a pending delivery the wake-up that it lacks. This is the step of whoever receives a message again that
/// carries a delivery, before anything else: if the queue gives the message up, a drain finds the delivery. A repair does
/// the same, because the message may be lost. Returns `None` if nothing is lacking.
pub fn watch(seen: &Progress, wake_at: Timestamp) -> Option<Transition> {
    let when = vec![Condition::Status(Status::Pending), Condition::NoWakeUp];
    seen.is_unwatched().then(|| Transition { when, then: wakes(wake_at).to_vec() })
}

/// Ends a pending delivery that is no longer kept. This is the step of whoever has claimed its attempt.
pub fn expire(lease: Token) -> Transition {
    let mut then = vec![Effect::Status(Status::Failed), Effect::Failure(Some(Failure::Expired))];
    then.extend(at_rest());
    Transition { when: vec![Condition::Status(Status::Pending), Condition::LeaseOf(lease)], then }
}

/// Takes back the claim of an attempt that was not made, because the instance lacks something for it. It counts as no
/// claim.
pub fn release(claimed: &Progress, lease: Token) -> Transition {
    let then = vec![Effect::Lease(None), Effect::Claims(claimed.claims.saturating_sub(1))];
    Transition { when: vec![Condition::Status(Status::Pending), Condition::LeaseOf(lease)], then }
}

/// Why a step for a message changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRefusal {
    /// The claim had succeeded before: the answer to an earlier try of the same write was lost.
    AlreadyClaimedByUs,
    /// Somebody else has claimed this attempt, until this time at the latest.
    Leased(Timestamp),
    /// The delivery has moved on, or is gone.
    Void,
}

/// Returns why a claim, a hold or an end changed nothing. `found` is the delivery's progress as the refused write
/// met it.
pub fn refusal(found: Option<&Progress>, dispatch: &Dispatch, id: Token, now: Timestamp) -> StepRefusal {
    let Some(found) = found else { return StepRefusal::Void };
    let is_open = same_attempt(dispatch).iter().all(|condition| condition.holds(found));
    match found.lease {
        Some(lease) if lease.id == id => StepRefusal::AlreadyClaimedByUs,
        Some(lease) if is_open && found.is_leased(now) => StepRefusal::Leased(lease.until),
        _ => StepRefusal::Void,
    }
}

/// Records an acknowledgement. It needs no lease, only a pending delivery and the same round: an acknowledgement that
/// comes after the lease has run out must still prevent a switch-off (specification 6.9.4).
pub fn succeed(dispatch: &Dispatch, attempt: Attempt) -> Transition {
    let when = vec![Condition::Status(Status::Pending), Condition::Round(dispatch.round)];
    let mut then = vec![Effect::Status(Status::Delivered), Effect::Attempt(attempt)];
    then.extend(at_rest());
    Transition { when, then }
}

/// How an attempt's failure is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// There is a next attempt. If it waits as a message ([`Wait::Delayed`]), the message is sent before the
    /// transition is made, so that a crash between the two cannot lose it. Until then the message is void.
    Again(Wait, Transition),
    /// The attempt was the last one of its round.
    GiveUp(Transition),
}

/// Returns how to record an attempt that failed under a lease. The record is refused if somebody else has
/// claimed the attempt since. `epoch` is that of the endpoint to which the attempt was made.
pub fn after_failure(
    dispatch: &Dispatch,
    lease: Token,
    attempt: Attempt,
    epoch: u64,
    is_test: bool,
    schedule: Schedule,
    now: Timestamp,
) -> AfterFailure {
    let when = vec![
        Condition::LeaseOf(lease),
        Condition::FailedAttempts(dispatch.attempt - 1),
        Condition::Status(Status::Pending),
    ];
    let mut then = vec![Effect::FailedAttempts(dispatch.attempt), Effect::Attempt(attempt)];
    then.extend((dispatch.attempt == 1).then_some(Effect::Epoch(epoch)));
    let last = if is_test { 1 } else { ATTEMPTS };
    let wait = if dispatch.attempt < last { schedule.after_failure(dispatch.attempt, now) } else { None };
    let Some(wait) = wait else {
        then.extend([Effect::Status(Status::Failed), Effect::Failure(Some(Failure::Unacknowledged))]);
        then.extend(at_rest());
        return AfterFailure::GiveUp(Transition { when, then });
    };
    let (due, wake_at) = wait.times(schedule, now);
    then.extend([Effect::Token(lease), Effect::Lease(None), Effect::Claims(0), Effect::Due(due)]);
    then.extend(wakes(wake_at));
    AfterFailure::Again(wait, Transition { when, then })
}

/// Holds a delivery because its endpoint is off, unless an attempt is being made.
pub fn hold(dispatch: &Dispatch, now: Timestamp) -> Transition {
    let mut then = vec![Effect::Status(Status::Held)];
    then.extend(at_rest());
    Transition { when: open_to(dispatch, now), then }
}

/// Ends a delivery because its endpoint was removed. This is the step of whoever receives the delivery's message.
pub fn end(dispatch: &Dispatch, now: Timestamp) -> Transition {
    Transition { when: open_to(dispatch, now), then: ended() }
}

/// Ends a delivery because its endpoint was removed. This is the step of whoever removes the endpoint. Returns `None`
/// if the delivery has already ended.
pub fn end_for_removed_endpoint(seen: &Progress, now: Timestamp) -> Option<Transition> {
    let is_unsettled = match seen.status {
        Status::Pending | Status::Held => true,
        Status::Delivered | Status::Failed => false,
    };
    let when = vec![Condition::Status(seen.status), Condition::Round(seen.round), Condition::NoLease(now)];
    is_unsettled.then(|| Transition { when, then: ended() })
}

/// Begins a new round of attempts, whatever became of the one before, unless an attempt is being made. It makes older
/// messages void, and drops the oldest attempts of a record that is nearly full. Each record of an attempt changes the
/// status or the number of failed attempts, so the conditions also say that no attempt was recorded since `seen`. The
/// drain of the account makes the first attempt.
pub fn resend(seen: &Progress, token: Token, now: Timestamp) -> Transition {
    let mut then = vec![
        Effect::Failure(None),
        Effect::Round(seen.round + 1),
        Effect::FailedAttempts(0),
        Effect::Token(token),
        Effect::Lease(None),
        Effect::Claims(0),
        Effect::Due(now),
    ];
    then.extend(wakes(due_now(seen.round + 1)));
    then.extend(make_room(seen));
    let when = vec![
        Condition::Status(seen.status),
        Condition::Round(seen.round),
        Condition::FailedAttempts(seen.failed_attempts),
        Condition::NoLease(now),
    ];
    Transition { when, then }
}

/// Begins a new round as [`resend`] does, for the owner, whose rounds are counted. Each of them raises the number of the
/// round, so none is left out. Returns `None` if owners began [`MAX_OWNER_ROUNDS_A_DAY`] on this day already.
pub fn resend_by_owner(seen: &Progress, token: Token, now: Timestamp) -> Option<Transition> {
    let today = now.millis().div_euclid(DAY_MILLIS);
    // A host whose clock is ahead may have begun the next day already.
    let rounds = match seen.owner_rounds {
        Some(OwnerRounds { day, count }) if day >= today => OwnerRounds { day, count: count + 1 },
        _ => OwnerRounds { day: today, count: 1 },
    };
    let mut step = resend(seen, token, now);
    step.then.push(Effect::OwnerRounds(rounds));
    (rounds.count <= MAX_OWNER_ROUNDS_A_DAY).then_some(step)
}

/// Requires that the message calls for the attempt that comes next, and that nobody is making it.
fn open_to(dispatch: &Dispatch, now: Timestamp) -> Vec<Condition> {
    let mut when = same_attempt(dispatch).to_vec();
    when.push(Condition::NoLease(now));
    when
}

fn same_attempt(dispatch: &Dispatch) -> [Condition; 4] {
    [
        Condition::Status(Status::Pending),
        Condition::Round(dispatch.round),
        Condition::FailedAttempts(dispatch.attempt - 1),
        Condition::Token(dispatch.token),
    ]
}

fn ended() -> Vec<Effect> {
    let mut then = vec![Effect::Status(Status::Failed), Effect::Failure(Some(Failure::EndpointRemoved))];
    then.extend(at_rest());
    then
}

/// Lets the drain make the next attempt from then on. A pending delivery with a wake-up can be listed.
fn wakes(at: Timestamp) -> [Effect; 2] {
    [Effect::Status(Status::Pending), Effect::WakeAt(Some(at))]
}

/// Removes the lease and the wake-up: nobody makes an attempt any more, and no drain looks for one.
fn at_rest() -> [Effect; 2] {
    [Effect::Lease(None), Effect::WakeAt(None)]
}

/// Returns the effects that drop the oldest attempts, if a new round could otherwise record one too many. They are
/// exact only if nothing was recorded since `seen`.
fn make_room(seen: &Progress) -> Vec<Effect> {
    let surplus = (seen.attempts.len() + ATTEMPTS as usize).saturating_sub(MAX_KEPT_ATTEMPTS);
    if surplus == 0 {
        return Vec::new();
    }
    let kept = seen.attempts.iter().skip(surplus).cloned().collect();
    vec![Effect::Attempts(kept), Effect::DroppedAttempts(seen.dropped_attempts + surplus)]
}
