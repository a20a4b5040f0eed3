//! The state of the model: an endpoint, its deliveries, the drain of its account, the queues, and whoever works on them.

use common::event::EventKind;
use common::ids::EndpointId;
use common::timestamp::Timestamp;
use uuid::Uuid;
use webhooks::delivery::{Delivery, Dispatch, Progress, Status, Token, Transition, overdue_at};
use webhooks::{ATTEMPTS, Schedule, Wait};

use crate::bounds::{Bounds, Left, Start};
use crate::drain::{DrainRow, SweepStep, Sweeper};
use crate::invariants::Broken;
use crate::operator::Operator;
use crate::run::{DrainCall, Run};
use crate::time::{DELAYS, LAG, Millis, SECOND};
use crate::worker::Worker;

/// The whole state at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time. Each process has its own clock, which may be wrong.
    pub(crate) now: Millis,
    /// `None` once it is removed.
    pub(crate) endpoint: Option<EndpointSwitch>,
    /// `None` until somebody calls the drain.
    pub(crate) drain: Option<DrainRow>,
    pub(crate) deliveries: Vec<Tracked>,
    /// In order.
    pub(crate) queue: Vec<QueuedMessage>,
    /// The messages that call the drain, in order.
    pub(crate) calls: Vec<DrainCall>,
    /// In order.
    pub(crate) workers: Vec<Worker>,
    /// The runs of the drain, in order.
    pub(crate) runs: Vec<Run>,
    pub(crate) sweepers: Vec<Sweeper>,
    /// When the next sweep begins at the earliest, if that is still to come.
    pub(crate) swept_until: Option<Millis>,
    pub(crate) operators: Vec<Operator>,
    /// The epochs that have a notice.
    pub(crate) notices: Vec<u64>,
    /// How often things may still go wrong or be asked for.
    pub(crate) left: Left,
    /// Whether a message was lost.
    pub(crate) has_lost: bool,
    /// The first invariant that did not hold.
    pub(crate) broken: Option<Broken>,
}

/// The part of an endpoint that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EndpointSwitch {
    pub(crate) is_on: bool,
    pub(crate) epoch: u64,
}

/// A delivery, with what only the model knows about its round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tracked {
    /// The stored progress without its attempts, which are counted below. `None` until the delivery is stored.
    pub(crate) progress: Option<Progress>,
    pub(crate) began_at: Millis,
    /// The recorded attempts of this round, failed or not.
    pub(crate) attempts: u32,
    /// When the last recorded attempt failed.
    pub(crate) failed_at: Option<Millis>,
    /// The oldest epoch in which an attempt of this round was sent that failed.
    pub(crate) epoch: Option<u64>,
    /// How often the next attempt was sent.
    pub(crate) posts: u32,
    /// What the index may still show instead of what is stored.
    stale: Option<Stale>,
}

/// What the index shows of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    wake_at: Option<Timestamp>,
    is_listed: bool,
}

/// What the index may still show although it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stale {
    entry: Entry,
    until: Millis,
}

/// What the index shows of deliveries that have just changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Now,
    /// What was stored before the last change.
    Before,
    /// Nothing: it moves an entry by removing it first.
    Nothing,
}

/// A message that waits in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueuedMessage {
    pub(crate) visible_at: Millis,
    pub(crate) dispatch: Dispatch,
    pub(crate) kind: Kind,
    /// How often it counts as received.
    pub(crate) receives: u32,
}

/// What a message is, as `webhooks::QueueMessage` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// It calls for an attempt of a delivery that is stored.
    Attempt,
    /// It carries the delivery, and calls for the first attempt.
    First,
}

impl World {
    /// Starts with the deliveries of these bounds, their next attempt due now and its message sent.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let mut world = Self {
            now: 0,
            endpoint: Some(EndpointSwitch { is_on: true, epoch: 1 }),
            drain: None,
            deliveries: Vec::new(),
            queue: Vec::new(),
            calls: Vec::new(),
            workers: Vec::new(),
            runs: Vec::new(),
            sweepers: Vec::new(),
            swept_until: None,
            operators: Vec::new(),
            notices: Vec::new(),
            left: bounds.left,
            has_lost: false,
            broken: None,
        };
        for (index, start) in bounds.starts.iter().enumerate() {
            let (failed, kind) = match *start {
                Start::Carried => (0, Kind::First),
                Start::After(failed) => (failed, Kind::Attempt),
            };
            let progress = progress_after(index, failed);
            let dispatch = Dispatch::next_of(&Self::delivery(index, progress.clone()));
            if !is_parked(failed) {
                world.put(QueuedMessage { visible_at: 0, dispatch, kind, receives: 0 });
            }
            let progress = Some(progress).filter(|_| kind == Kind::Attempt);
            world.deliveries.push(Tracked::after(failed, progress));
        }
        // Whoever recorded the failures has called the drain.
        let stored = world.deliveries.iter().filter_map(|delivery| delivery.progress.as_ref()?.wake_at);
        if let Some(by) = stored.min() {
            world.call_drain_by(Token::from(Uuid::max()), by, Timestamp::from_millis(-HOUR));
        }
        world
    }

    /// What a clock with this error shows.
    pub(crate) fn clock(&self, skew: Millis) -> Timestamp {
        Timestamp::from_millis(self.now + skew)
    }

    /// Returns a delivery with this progress, as the code's own type.
    fn delivery(index: usize, progress: Progress) -> Delivery {
        Delivery {
            id: number(index).into(),
            endpoint_id: EndpointId::from(Uuid::nil()),
            account_id: Uuid::nil().into(),
            event: EventKind::ListingSold,
            is_test: false,
            created_at: Timestamp::from_millis(0),
            body: String::new(),
            progress,
        }
    }

    /// Returns the message for the next attempt of a delivery with this progress.
    pub(crate) fn next_dispatch(index: usize, progress: Progress) -> Dispatch {
        Dispatch::next_of(&Self::delivery(index, progress))
    }

    /// Which delivery a message is about.
    pub(crate) fn index_of(dispatch: &Dispatch) -> usize {
        (dispatch.delivery_id.uuid().as_u128() - FIRST) as usize
    }

    /// The progress of a delivery that is stored.
    pub(crate) fn stored(&self, index: usize) -> &Progress {
        self.deliveries[index].progress.as_ref().expect("the delivery is stored")
    }

    pub(crate) fn is_stored(&self, dispatch: &Dispatch) -> bool {
        self.deliveries[Self::index_of(dispatch)].progress.is_some()
    }

    /// The progress that a message is about. Its delivery is stored.
    pub(crate) fn progress_of(&self, dispatch: &Dispatch) -> &Progress {
        self.stored(Self::index_of(dispatch))
    }

    /// Whether a delivery is still to settle. Without a row it is, unless its endpoint was removed.
    pub(crate) fn is_open(&self, delivery: &Tracked) -> bool {
        delivery.status().map_or(self.endpoint.is_some(), |status| status == Status::Pending)
    }

    /// Makes a step if its conditions hold. Returns whether it was made, and the progress before it.
    pub(crate) fn write(&mut self, index: usize, step: &Transition) -> (bool, Progress) {
        let before = self.stored(index).clone();
        let Some(after) = step.apply(&before) else { return (false, before) };
        let shown = self.deliveries[index].entry();
        let broken = self.deliveries[index].change(&before, after, self.now);
        self.note(broken);
        self.note_index(index, shown);
        (true, before)
    }

    /// Notes what the index may still show of a delivery that has changed, if it can lag. A write that changes nothing of
    /// its entry leaves the entry alone.
    pub(crate) fn note_index(&mut self, index: usize, before: Entry) {
        let until = self.now + LAG;
        let delivery = &mut self.deliveries[index];
        if self.left.lags > 0 && delivery.entry() != before {
            delivery.stale = Some(Stale { entry: before, until });
        }
    }

    /// Drops what the index shows no longer.
    pub(crate) fn forget_index(&mut self) {
        let is_over = |stale: &Stale| stale.until <= self.now || self.left.lags == 0;
        self.deliveries.iter_mut().for_each(|delivery| delivery.stale = delivery.stale.filter(|stale| !is_over(stale)));
    }

    /// Whether the index can still show something else than what is stored.
    pub(crate) fn is_lagging(&self) -> bool {
        self.deliveries.iter().any(|delivery| delivery.stale.is_some())
    }

    /// Returns the wake-up with which the index shows a delivery.
    pub(crate) fn shows(&self, index: usize, shown: Shown) -> Option<Timestamp> {
        self.deliveries[index].shown(shown).wake_at
    }

    /// Whether the index lists a delivery among those that are to be ended if the endpoint is removed.
    pub(crate) fn lists(&self, index: usize, shown: Shown) -> bool {
        self.deliveries[index].shown(shown).is_listed
    }

    /// Notes a broken invariant, unless one was broken before.
    pub(crate) fn note(&mut self, broken: Option<Broken>) {
        self.broken = self.broken.or(broken);
    }

    pub(crate) fn check(&mut self, holds: bool, broken: Broken) {
        self.note((!holds).then_some(broken));
    }

    /// Returns a token that nothing uses. Always the first free one, because which one it is does not matter.
    pub(crate) fn free_token(&self) -> Token {
        let stored = self.deliveries.iter().filter_map(|delivery| delivery.progress.as_ref());
        let mut used: Vec<Token> = stored.clone().map(|progress| progress.token).collect();
        used.extend(stored.filter_map(|progress| Some(progress.lease?.id)));
        used.extend(self.queue.iter().map(|message| message.dispatch.token));
        used.extend(self.workers.iter().flat_map(|worker| [worker.dispatch.token, worker.lease]));
        used.extend(self.workers.iter().filter_map(|worker| worker.run));
        used.extend(self.workers.iter().filter_map(|worker| worker.phase.sends()));
        used.extend(self.operators.iter().flat_map(Operator::tokens));
        used.extend(self.drain.map(|row| row.token));
        used.extend(self.calls.iter().map(|call| call.token));
        used.extend(self.runs.iter().flat_map(Run::tokens));
        let sends = |sweeper: &Sweeper| if let SweepStep::Send(token, _) = sweeper.step { Some(token) } else { None };
        used.extend(self.sweepers.iter().filter_map(sends));
        let mut tokens = (1..).map(|number| Token::from(Uuid::from_u128(number)));
        tokens.find(|token| !used.contains(token)).expect("tokens never run out")
    }
}

impl Tracked {
    fn after(failed: u32, progress: Option<Progress>) -> Self {
        let delays = &DELAYS[..failed as usize];
        let failed_at = delays.last().map(|delay| -delay);
        let began_at = -delays.iter().sum::<Millis>();
        let epoch = (failed > 0).then_some(1);
        Self { progress, began_at, attempts: failed, failed_at, epoch, posts: 0, stale: None }
    }

    pub(crate) fn status(&self) -> Option<Status> {
        self.progress.as_ref().map(|progress| progress.status)
    }

    /// Returns what the index shows once it has caught up.
    pub(crate) fn entry(&self) -> Entry {
        let wake_at = self.progress.as_ref().and_then(|progress| progress.wake_at);
        Entry { wake_at, is_listed: self.status() == Some(Status::Held) || wake_at.is_some() }
    }

    fn shown(&self, shown: Shown) -> Entry {
        match (self.stale, shown) {
            (None, _) | (_, Shown::Now) => self.entry(),
            (Some(stale), Shown::Before) => stale.entry,
            (Some(_), Shown::Nothing) => Entry { wake_at: None, is_listed: false },
        }
    }

    fn change(&mut self, before: &Progress, mut after: Progress, now: Millis) -> Option<Broken> {
        let is_resent = after.round > before.round;
        if is_resent {
            (self.began_at, self.attempts, self.failed_at, self.epoch) = (now, 0, None, None);
        }
        self.attempts += std::mem::take(&mut after.attempts).len() as u32;
        let is_next = is_resent || after.failed_attempts > before.failed_attempts;
        if is_next {
            self.posts = 0;
        }
        let is_settled = after.status != Status::Pending;
        let is_final = matches!(before.status, Status::Delivered | Status::Failed) && !is_resent;
        let is_repeated = after.round < before.round || after.token != before.token && !is_next;
        let is_worn = is_next && !is_settled && (after.claims > 0 || after.lease.is_some());
        let acknowledged = u32::from(after.status == Status::Delivered);
        let broken = [
            (is_settled && after.wake_at.is_some(), Broken::NoWakeUp),
            (is_final || is_repeated, Broken::Reopened),
            (is_worn, Broken::Worn),
            (self.attempts > ATTEMPTS || self.attempts != after.failed_attempts + acknowledged, Broken::Miscounted),
        ];
        self.progress = Some(after);
        broken.into_iter().find_map(|(is_broken, broken)| is_broken.then_some(broken))
    }
}

/// Whether the attempt after this many failed ones is parked.
fn is_parked(failed: u32) -> bool {
    let wait = Schedule::default().after_failure(failed, Timestamp::from_millis(0));
    matches!(wait, Some(Wait::Parked { .. }))
}

fn progress_after(index: usize, failed: u32) -> Progress {
    let start = Timestamp::from_millis(0);
    let wake_at = if is_parked(failed) { start } else { overdue_at(Schedule::default(), start) };
    let new = Progress::new(number(index).into(), Status::Pending, start, wake_at);
    Progress { failed_attempts: failed, epoch: (failed > 0).then_some(1), ..new }
}

const HOUR: Millis = 60 * 60 * SECOND;
const FIRST: u128 = 1 << 64;

fn number(index: usize) -> Uuid {
    Uuid::from_u128(FIRST + index as u128)
}
