//! The state of the model: an endpoint, its deliveries, a queue, and whoever works on them.

use std::collections::BTreeSet;

use types::event::EventKind;
use types::ids::EndpointId;
use types::timestamp::Timestamp;
use uuid::Uuid;
use webhooks::ATTEMPTS;
use webhooks::Schedule;
use webhooks::delivery::{Delivery, Dispatch, Progress, Status, Token, Transition, overdue_at};
use webhooks::share::Share;

use crate::bounds::{Bounds, Endpoints, Left, Start};
use crate::invariants::Broken;
use crate::operator::Operator;
use crate::places::share_with;
use crate::sweeper::Sweeper;
use crate::time::{DELAYS, Millis};
use crate::worker::Worker;

/// The whole state at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time. Each process has its own clock, which may be wrong.
    pub(crate) now: Millis,
    /// `None` once it is removed.
    pub(crate) endpoint: Option<EndpointSwitch>,
    /// The endpoints that are known to be prompt. Attempts to all others need places.
    pub(crate) prompt: BTreeSet<EndpointId>,
    /// The places of the account to which all endpoints belong.
    pub(crate) share: Share,
    pub(crate) deliveries: Vec<Tracked>,
    /// In order.
    pub(crate) queue: Vec<QueuedMessage>,
    /// In order.
    pub(crate) workers: Vec<Worker>,
    pub(crate) sweepers: Vec<Sweeper>,
    pub(crate) operators: Vec<Operator>,
    /// The epochs that have a notice.
    pub(crate) notices: Vec<u64>,
    /// How often things may still go wrong or be asked for.
    pub(crate) left: Left,
    /// Whether a message was lost.
    pub(crate) has_lost: bool,
    /// Whether a removal was cut short.
    pub(crate) is_cut_short: bool,
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
    pub(crate) endpoint_id: EndpointId,
    /// The stored progress without its attempts, which are counted below. `None` until the delivery is stored.
    pub(crate) progress: Option<Progress>,
    pub(crate) began_at: Millis,
    /// The recorded attempts of this round, failed or not.
    pub(crate) attempts: u32,
    /// When the last recorded attempt failed.
    pub(crate) failed_at: Option<Millis>,
    /// How often the next attempt was sent.
    pub(crate) posts: u32,
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
            prompt: (bounds.endpoints == Endpoints::Prompt)
                .then(|| EndpointId::from(Uuid::nil()))
                .into_iter()
                .collect(),
            share: share_with(bounds.endpoints),
            deliveries: Vec::new(),
            queue: Vec::new(),
            workers: Vec::new(),
            sweepers: Vec::new(),
            operators: Vec::new(),
            notices: Vec::new(),
            left: bounds.left,
            has_lost: false,
            is_cut_short: false,
            broken: None,
        };
        for (index, start) in bounds.starts.iter().enumerate() {
            let (failed, turns, kind) = match *start {
                Start::Carried => (0, 0, Kind::First),
                Start::After(failed) => (failed, 0, Kind::Attempt),
                Start::Turned(turns) => (0, turns, Kind::Attempt),
            };
            let progress = Progress { turns, ..progress_after(index, failed) };
            let endpoint = if bounds.endpoints == Endpoints::Apart { number(index) } else { Uuid::nil() };
            let dispatch = Dispatch::next_of(&Self::delivery(index, endpoint.into(), progress.clone()));
            world.put(QueuedMessage { visible_at: 0, dispatch, kind, receives: 0 });
            let progress = Some(progress).filter(|_| kind == Kind::Attempt);
            world.deliveries.push(Tracked::after(failed, endpoint.into(), progress));
        }
        world
    }

    /// What a clock with this error shows.
    pub(crate) fn clock(&self, skew: Millis) -> Timestamp {
        Timestamp::from_millis(self.now + skew)
    }

    /// Returns a delivery with this progress, as the code's own type.
    fn delivery(index: usize, endpoint_id: EndpointId, progress: Progress) -> Delivery {
        Delivery {
            id: number(index).into(),
            endpoint_id,
            account_id: Uuid::nil().into(),
            event: EventKind::ListingSold,
            is_test: false,
            created_at: Timestamp::from_millis(0),
            body: String::new(),
            progress,
        }
    }

    /// Returns the message for the next attempt of a delivery with this progress.
    pub(crate) fn next_dispatch(&self, index: usize, progress: Progress) -> Dispatch {
        Dispatch::next_of(&Self::delivery(index, self.deliveries[index].endpoint_id, progress))
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
        let broken = self.deliveries[index].change(&before, after, self.now);
        self.note(broken);
        (true, before)
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
        used.extend(self.sweepers.iter().map(|sweeper| sweeper.seen.token));
        used.extend(self.operators.iter().filter_map(Operator::token));
        used.extend(self.share.places.iter().flatten().map(|place| place.holder));
        let mut tokens = (1..).map(|number| Token(Uuid::from_u128(number)));
        tokens.find(|token| !used.contains(token)).expect("tokens never run out")
    }
}

impl Tracked {
    fn after(failed: u32, endpoint_id: EndpointId, progress: Option<Progress>) -> Self {
        let delays = &DELAYS[..failed as usize];
        let failed_at = delays.last().map(|delay| -delay);
        let began_at = -delays.iter().sum::<Millis>();
        Self { endpoint_id, progress, began_at, attempts: failed, failed_at, posts: 0 }
    }

    pub(crate) fn status(&self) -> Option<Status> {
        self.progress.as_ref().map(|progress| progress.status)
    }

    fn change(&mut self, before: &Progress, mut after: Progress, now: Millis) -> Option<Broken> {
        let is_resent = after.round > before.round;
        if is_resent {
            (self.began_at, self.attempts, self.failed_at) = (now, 0, None);
        }
        self.attempts += std::mem::take(&mut after.attempts).len() as u32;
        let is_next = is_resent || after.failed_attempts > before.failed_attempts;
        if is_next {
            self.posts = 0;
        }
        let is_settled = after.status != Status::Pending;
        let is_final = matches!(before.status, Status::Delivered | Status::Failed) && !is_resent;
        // Two messages that carry a delivery may have left a different number of times.
        let has_left = after.turns > 0;
        let is_repeated = after.round < before.round || after.token != before.token && !is_next && !has_left;
        let is_worn = is_next && !is_settled && (after.claims > 0 || after.lease.is_some() || after.turns > 0);
        let acknowledged = u32::from(after.status == Status::Delivered);
        let broken = [
            (is_settled && after.wake_at.is_some(), Broken::NoWakeUp),
            (is_final || is_repeated, Broken::Reopened),
            (is_worn, Broken::Worn),
            (after.turns > MAX_TURNS, Broken::CrowdedOut),
            (self.attempts > ATTEMPTS || self.attempts != after.failed_attempts + acknowledged, Broken::Miscounted),
        ];
        self.progress = Some(after);
        broken.into_iter().find_map(|(is_broken, broken)| is_broken.then_some(broken))
    }
}

fn progress_after(index: usize, failed: u32) -> Progress {
    let start = Timestamp::from_millis(0);
    let new = Progress::new(number(index).into(), Status::Pending, start, overdue_at(Schedule::default(), start, 0));
    Progress { failed_attempts: failed, ..new }
}

/// How often an attempt leaves at most within these bounds.
const MAX_TURNS: u32 = 40;
const FIRST: u128 = 1 << 64;

fn number(index: usize) -> Uuid {
    Uuid::from_u128(FIRST + index as u128)
}
