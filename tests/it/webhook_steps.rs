//! Compares a delivery's steps as DynamoDB makes them with the same steps on plain values.

use std::sync::atomic::{AtomicU32, Ordering};

use common::event::EventKind;
use common::ids::DeliveryId;
use common::timestamp::Timestamp;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tests::{NOON, Stack, dynamodb, play_histories, uuid};
use tokio::sync::OnceCell;
use uuid::Uuid;
use webhooks::Schedule;
use webhooks::delivery::{
    AfterFailure, Attempt, Condition, Delivery, Dispatch, Effect, Failure, Lease, MAX_OWNER_ROUNDS_A_DAY, OwnerRounds,
    Progress, Status, Token, Transition, after_failure, claim, claim_due, claim_watched, end, end_for_removed_endpoint,
    expire, hold, overdue_at, resend, resend_by_owner, succeed, wait, watch,
};
use webhooks::store::{StepOutcome, WebhookStore};

const CASES: u32 = 400;

#[test]
fn dynamodb_makes_each_step_as_the_pure_function_does() {
    let (stack, changed, refused) = (OnceCell::new(), AtomicU32::new(0), AtomicU32::new(0));
    let cases = progress().prop_flat_map(|progress| (transition(progress.clone()), Just(progress)));
    play_histories(CASES, &cases, async |(transition, progress)| {
        let stack = stack.get_or_init(Stack::new).await;
        let store = WebhookStore::new(dynamodb(stack), "marketplace-webhooks".to_owned());
        let before = delivery(progress);
        store.put_delivery(&before).await.unwrap();
        let applied = store.step(before.id, before.endpoint_id, &transition).await.unwrap();
        let (expected, after) = if let Some(progress) = transition.apply(&before.progress) {
            changed.fetch_add(1, Ordering::Relaxed);
            let after = Delivery { progress, ..before };
            (StepOutcome::Changed(Box::new(after.clone())), after)
        } else {
            refused.fetch_add(1, Ordering::Relaxed);
            (StepOutcome::Refused(Some(Box::new(before.clone()))), before)
        };
        assert_eq!(applied, expected);
        assert_eq!(store.delivery(after.id).await.unwrap(), Some(after));
    });
    let (changed, refused) = (changed.into_inner(), refused.into_inner());
    assert!(changed > CASES / 8 && refused > CASES / 8, "{changed} changed, {refused} refused");
}

#[tokio::test]
async fn no_step_creates_a_missing_delivery() {
    let stack = Stack::new().await;
    let store = WebhookStore::new(dynamodb(&stack), "marketplace-webhooks".to_owned());
    let (now, token) = (time(0), Token::random());
    let missing = delivery(Progress::new(DeliveryId::from(uuid(1)), Status::Pending, now, now));
    let seen = Progress { wake_at: None, ..missing.progress.clone() };
    let steps = steps(&seen, token, Attempt::lost(now), now);
    for step in steps {
        assert_eq!(
            store.step(missing.id, missing.endpoint_id, &step).await.unwrap(),
            StepOutcome::Refused(None),
            "{step:?}"
        );
    }
    assert_eq!(store.delivery(missing.id).await.unwrap(), None);
}

fn delivery(progress: Progress) -> Delivery {
    Delivery {
        id: Uuid::new_v4().into(),
        endpoint_id: uuid(2).into(),
        account_id: uuid(3).into(),
        event: EventKind::ListingSold,
        event_id: Some(uuid(7).into()),
        is_test: false,
        created_at: time(0),
        body: "{}".to_owned(),
        progress,
    }
}

fn progress() -> impl Strategy<Value = Progress> {
    let lease = (token(), times()).prop_map(|(id, until)| Lease { id, until });
    let next = (select(&Status::ALL), option::of(failure()), 1u32..3, 0u32..8, token(), option::of(lease));
    let rounds = (0i64..3, 0..=MAX_OWNER_ROUNDS_A_DAY).prop_map(|(day, count)| OwnerRounds { day, count });
    let dropped = (0usize..3, option::of(rounds));
    let times = (0u32..5, times(), option::of(times()), option::of(1u64..3), attempts(), dropped);
    (next, times).prop_map(|(next, times)| {
        let (status, failure, round, failed_attempts, token, lease) = next;
        let (claims, due, wake_at, epoch, attempts, (dropped_attempts, owner_rounds)) = times;
        Progress {
            status,
            failure,
            round,
            failed_attempts,
            token,
            lease,
            claims,
            due,
            wake_at,
            epoch,
            attempts,
            dropped_attempts,
            owner_rounds,
        }
    })
}

/// A step of the code that may or may not match the progress, or any conditions and effects.
fn transition(progress: Progress) -> impl Strategy<Value = Transition> {
    let seen = prop_oneof![3 => Just(progress.clone()), 1 => self::progress()];
    let lease = progress.lease.map_or_else(|| token().boxed(), |lease| prop_oneof![Just(lease.id), token()].boxed());
    let step = (seen, lease, times(), attempt());
    let step = step.prop_flat_map(|(seen, lease, now, attempt)| select(steps(&seen, lease, attempt, now)));
    let any = (prop::collection::vec(condition(progress), 1..4), effects());
    prop_oneof![step, any.prop_map(|(when, then)| Transition { when, then })]
}

/// Returns every step that somebody who has seen this progress may take.
fn steps(seen: &Progress, lease: Token, attempt: Attempt, now: Timestamp) -> Vec<Transition> {
    let dispatch = Dispatch::next_of(&delivery(seen.clone()));
    let schedule = Schedule::default();
    let failed = match after_failure(&dispatch, lease, attempt.clone(), 1, false, schedule, now) {
        AfterFailure::Again(_, step) | AfterFailure::GiveUp(step) => step,
    };
    let mut steps = vec![
        claim(&dispatch, lease, now),
        claim_watched(&dispatch, lease, schedule, now),
        claim_due(seen.wake_at.unwrap_or(now), lease, now),
        wait(&dispatch, now),
        expire(lease),
        succeed(&dispatch, attempt),
        failed,
        hold(&dispatch, now),
        end(&dispatch, now),
        resend(seen, lease, now),
    ];
    steps.extend(resend_by_owner(seen, lease, now));
    steps.extend(watch(seen, overdue_at(schedule, now)));
    steps.extend(end_for_removed_endpoint(seen, now));
    steps
}

/// A condition. Three in four are taken from the progress itself, so most hold.
fn condition(progress: Progress) -> impl Strategy<Value = Condition> {
    let conditions = |progress: Progress, now| {
        let mut conditions = vec![
            Condition::Status(progress.status),
            Condition::Round(progress.round),
            Condition::FailedAttempts(progress.failed_attempts),
            Condition::Token(progress.token),
            Condition::NoLease(now),
            Condition::NoWakeUp,
        ];
        conditions.extend(progress.lease.map(|lease| Condition::LeaseOf(lease.id)));
        conditions.extend(progress.wake_at.map(Condition::WakeAt));
        select(conditions)
    };
    let seen = prop_oneof![3 => Just(progress), 1 => self::progress()];
    (seen, times()).prop_flat_map(move |(progress, now)| conditions(progress, now))
}

/// Some effects, each on another attribute, because an update cannot set one twice.
fn effects() -> impl Strategy<Value = Vec<Effect>> {
    (progress(), attempt(), any::<[bool; 2]>()).prop_flat_map(|(progress, attempt, [is_claimed, is_recorded])| {
        let effects = vec![
            Effect::Status(progress.status),
            Effect::Failure(progress.failure),
            Effect::Round(progress.round),
            Effect::FailedAttempts(progress.failed_attempts),
            Effect::Token(progress.token),
            Effect::Lease(progress.lease),
            if is_claimed { Effect::Claimed } else { Effect::Claims(progress.claims) },
            Effect::Due(progress.due),
            Effect::WakeAt(progress.wake_at),
            Effect::Epoch(progress.epoch.unwrap_or(1)),
            if is_recorded { Effect::Attempt(attempt) } else { Effect::Attempts(progress.attempts) },
            Effect::DroppedAttempts(progress.dropped_attempts),
            Effect::OwnerRounds(progress.owner_rounds.unwrap_or(OwnerRounds { day: 1, count: 1 })),
        ];
        let all = effects.len();
        subsequence(effects, 1..=all)
    })
}

/// Mostly a few attempts, and now and then so many that a new round drops some.
fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    prop_oneof![3 => prop::collection::vec(attempt(), 0..3), 1 => prop::collection::vec(attempt(), 12..24)]
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let text = || option::of("[a-z é\"\\\\]{0,12}");
    (times(), option::of(100u16..600), any::<u32>(), text(), text())
        .prop_map(|(at, status, latency_ms, error, response)| Attempt { at, status, latency_ms, error, response })
}

fn failure() -> impl Strategy<Value = Failure> {
    select(&Failure::ALL)
}

fn token() -> impl Strategy<Value = Token> {
    (1u128..4).prop_map(|number| Token::from(uuid(number)))
}

/// Only four different times, so that two are often equal.
fn times() -> impl Strategy<Value = Timestamp> {
    (0i64..4).prop_map(time)
}

fn time(second: i64) -> Timestamp {
    NOON.parse::<Timestamp>().unwrap().plus_millis(second * 1_000)
}
