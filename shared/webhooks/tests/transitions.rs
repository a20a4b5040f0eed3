//! A model checker for the steps of a delivery's life. It plays the code's own transitions, one by one, in every order
//! that crashes, lost answers, late writes and repeated messages can cause: a message that was sent may come at any time
//! and any number of times, what the index has shown may be acted on at any time, and a holder of a lease may record its
//! result at any time or never.
//!
//! It knows no order of steps. `tests/simulation` plays the functions that have one.

use common::ids::Token;
use common::timestamp::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};
use uuid::Uuid;
use webhooks::delivery::{
    AfterFailure, Attempt, Delivery, Dispatch, LEASE_SECONDS, MAX_CLAIMS, Progress, Status, Transition, after_failure,
    claim, claim_due, claim_watched, end_for_removed_endpoint, expire, hold, overdue_at, release, resend, succeed,
    wait, watch,
};
use webhooks::{ATTEMPTS, Schedule};

/// How long a holder works at most, in seconds: the function's time-out. A lease adds what clocks may differ.
const WORK_SECONDS: i64 = LEASE_SECONDS - 60;
/// Time passes in steps of this many seconds. Four of them outlast a lease.
const TICK_SECONDS: i64 = WORK_SECONDS + 1;
const EPOCH: u64 = 1;

/// How much can happen.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// How many attempts have failed at the beginning.
    failed: u32,
    claims: u8,
    resends: u8,
    ticks: u8,
    /// By how many seconds the clock of a holder may be ahead or behind.
    clocks_off: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    row: Progress,
    /// Every message that was ever sent.
    messages: Vec<Dispatch>,
    /// Every wake-up that the index has ever shown.
    wake_ups: Vec<Timestamp>,
    holders: Vec<Holder>,
    ticks: u8,
    claims: u8,
    resends: u8,
    broken: Option<&'static str>,
}

/// Whoever has claimed an attempt. It may have died since then, which nobody can tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Holder {
    dispatch: Dispatch,
    lease: Token,
    claimed: u32,
    /// When the attempt must be over, by a clock that is right.
    ends: i64,
    has_recorded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Tick,
    /// Claims by a message, or by a wake-up, with a clock that is off by this many seconds.
    Claim(usize, i64),
    ClaimWatched(usize, i64),
    ClaimDue(usize, i64),
    Wait(usize),
    Watch,
    Hold(usize),
    Acknowledge(usize),
    Fail(usize),
    Release(usize),
    Expire(usize),
    Resend,
    Remove,
}

fn schedule() -> Schedule {
    Schedule::default()
}

fn token(number: usize) -> Token {
    Uuid::from_u128(100 + number as u128).into()
}

fn delivery_with(progress: Progress) -> Delivery {
    Delivery {
        id: Uuid::from_u128(1).into(),
        endpoint_id: Uuid::from_u128(2).into(),
        account_id: Uuid::from_u128(3).into(),
        event: common::event::EventKind::ListingSold,
        event_id: None,
        is_test: false,
        created_at: at(0),
        body: "{}".to_owned(),
        progress,
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000 + seconds * 1_000)
}

impl World {
    fn seconds(&self) -> i64 {
        i64::from(self.ticks) * TICK_SECONDS
    }

    fn now(&self) -> Timestamp {
        at(self.seconds())
    }

    /// Makes a step if its conditions hold. Returns whether it did.
    fn apply(&mut self, step: &Transition) -> bool {
        let before = self.row.clone();
        let Some(row) = step.apply(&before) else { return false };
        self.row = row;
        self.wake_ups.extend(self.row.wake_at.filter(|at| !self.wake_ups.contains(at)));
        self.check(&before);
        true
    }

    fn claimed(&mut self, step: &Transition, lease: Token) {
        self.claims += 1;
        if !self.apply(step) {
            return;
        }
        let working = self.holders.iter().any(|holder| !holder.has_recorded && holder.ends >= self.seconds());
        if working {
            self.broken = Some("two attempts at once");
        }
        let dispatch = Dispatch::next_of(&delivery_with(self.row.clone()));
        let ends = self.seconds() + WORK_SECONDS;
        self.holders.push(Holder { dispatch, lease, claimed: self.row.claims, ends, has_recorded: false });
    }

    fn check(&mut self, before: &Progress) {
        let Progress { status, round, failed_attempts, claims, wake_at, lease, .. } = &self.row;
        let (is_pending, was_pending) = (*status == Status::Pending, before.status == Status::Pending);
        let next = Dispatch::next_of(&delivery_with(self.row.clone()));
        let broken = [
            (!is_pending && (wake_at.is_some() || lease.is_some()), "an ended delivery has a wake-up or a lease"),
            (is_pending && wake_at.is_none() && !self.messages.contains(&next), "nothing calls for a pending delivery"),
            (*failed_attempts > ATTEMPTS, "too many failures"),
            (*failed_attempts > before.failed_attempts + 1, "a failure counts twice"),
            (before.round == *round && *failed_attempts < before.failed_attempts, "a failure is lost"),
            (before.round > *round, "an older round"),
            (before.round == *round && is_pending && !was_pending, "reopened"),
            (before.token != self.row.token && (*claims > 0 || lease.is_some()), "the next attempt begins claimed"),
            (
                before.status == Status::Delivered && before.round == *round && *before != self.row,
                "changed after it was delivered",
            ),
        ];
        self.broken = self.broken.or(broken.iter().find(|(is_broken, _)| *is_broken).map(|(_, what)| *what));
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let id = Uuid::from_u128(1).into();
        let new = Progress::new(id, Status::Pending, at(0), at(0));
        let row = Progress { failed_attempts: self.failed, epoch: (self.failed > 0).then_some(EPOCH), ..new };
        let first = Dispatch::next_of(&delivery_with(row.clone()));
        // Stored as claimed by whoever got the first message, or with a wake-up.
        let unwatched = Progress { wake_at: None, ..row.clone() };
        let world = |row: Progress| World {
            wake_ups: row.wake_at.into_iter().collect(),
            row,
            messages: vec![first],
            holders: Vec::new(),
            ticks: 0,
            claims: 0,
            resends: 0,
            broken: None,
        };
        vec![world(row), world(unwatched)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.ticks < self.ticks {
            actions.push(Action::Tick);
        }
        let clocks = if self.clocks_off == 0 { vec![0] } else { vec![-self.clocks_off, self.clocks_off] };
        for off_by in clocks.into_iter().filter(|_| world.claims < self.claims) {
            actions.extend((0..world.messages.len()).map(|message| Action::Claim(message, off_by)));
            actions.extend((0..world.messages.len()).map(|message| Action::ClaimWatched(message, off_by)));
            actions.extend((0..world.wake_ups.len()).map(|wake_up| Action::ClaimDue(wake_up, off_by)));
        }
        actions.extend((0..world.messages.len()).flat_map(|message| [Action::Wait(message), Action::Hold(message)]));
        actions.extend([Action::Watch, Action::Remove]);
        for holder in (0..world.holders.len()).filter(|holder| !world.holders[*holder].has_recorded) {
            let own = [Action::Acknowledge, Action::Fail, Action::Release, Action::Expire];
            actions.extend(own.map(|action| action(holder)));
        }
        if world.resends < self.resends {
            actions.push(Action::Resend);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        let (now, fresh) = (last.now(), token(10 * usize::from(last.claims) + usize::from(last.resends)));
        let attempt = |status| Attempt { status: Some(status), ..Attempt::lost(now) };
        let by = |off_by: i64| now.plus_millis(off_by * 1_000);
        match action {
            Action::Tick => world.ticks += 1,
            Action::Claim(message, off_by) => {
                world.claimed(&claim(&last.messages[message], fresh, by(off_by)), fresh);
            }
            Action::ClaimWatched(message, off_by) => {
                let step = claim_watched(&last.messages[message], fresh, schedule(), by(off_by));
                world.claimed(&step, fresh);
            }
            Action::ClaimDue(wake_up, off_by) => {
                world.claimed(&claim_due(last.wake_ups[wake_up], fresh, by(off_by)), fresh);
            }
            Action::Wait(message) => drop(world.apply(&wait(&last.messages[message], now))),
            Action::Hold(message) => drop(world.apply(&hold(&last.messages[message], now))),
            Action::Watch => drop(world.apply(&watch(&last.row, overdue_at(schedule(), now))?)),
            Action::Remove => drop(world.apply(&end_for_removed_endpoint(&last.row, now)?)),
            Action::Acknowledge(holder) => {
                world.holders[holder].has_recorded = true;
                let dispatch = last.holders[holder].dispatch;
                if !world.apply(&succeed(&dispatch, attempt(204)))
                    && last.row.status == Status::Pending
                    && last.row.round == dispatch.round
                {
                    world.broken = Some("an acknowledgement is ignored");
                }
            }
            Action::Fail(holder) => {
                world.holders[holder].has_recorded = true;
                let Holder { dispatch, lease, claimed, .. } = last.holders[holder].clone();
                if claimed > MAX_CLAIMS + 1 {
                    world.broken = Some("claimed too often");
                }
                let step = match after_failure(&dispatch, lease, attempt(500), EPOCH, false, schedule(), now) {
                    AfterFailure::Again(_, step) => {
                        // The message may be there before the record, and without it.
                        world.messages.push(dispatch.after(lease));
                        step
                    }
                    AfterFailure::GiveUp(step) => step,
                };
                world.apply(&step);
            }
            Action::Release(holder) => {
                world.holders[holder].has_recorded = true;
                let claimed = Progress { claims: last.holders[holder].claimed, ..last.row.clone() };
                world.apply(&release(&claimed, last.holders[holder].lease));
            }
            Action::Expire(holder) => {
                world.holders[holder].has_recorded = true;
                world.apply(&expire(last.holders[holder].lease));
            }
            Action::Resend => {
                world.resends += 1;
                world.apply(&resend(&last.row, fresh, now));
            }
        }
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is broken", |_, world: &World| world.broken.is_none()),
            Property::sometimes("delivered", |_, world: &World| world.row.status == Status::Delivered),
            Property::sometimes("failed", |_, world: &World| world.row.status == Status::Failed),
            Property::sometimes("held", |_, world: &World| world.row.status == Status::Held),
            Property::sometimes("retried", |_, world: &World| world.row.failed_attempts > 0),
        ]
    }
}

/// Visits every state within the bounds. With `--nocapture` it prints how many there were.
fn play(bounds: Bounds) {
    let checker = bounds.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{} states, {} deep: {bounds:?}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

#[test]
fn every_order_of_three_claims() {
    play(Bounds { failed: ATTEMPTS - 1, claims: 3, resends: 0, ticks: 4, clocks_off: 0 });
}

#[test]
fn every_order_with_clocks_that_are_half_a_minute_off() {
    play(Bounds { failed: 0, claims: 2, resends: 0, ticks: 4, clocks_off: 30 });
}

#[test]
fn every_order_with_a_new_round() {
    play(Bounds { failed: ATTEMPTS - 1, claims: 2, resends: 1, ticks: 4, clocks_off: 0 });
}
