//! The places of an account's share, and the attempts that leave without one, as in `functions/webhook/src/places.rs`,
//! `leave.rs` and `webhooks::store`. A batch has one message here, and the lanes are left out: a message that is sent on
//! to another is only late.

use types::ids::EndpointId;
use types::timestamp::Timestamp;
use uuid::Uuid;
use webhooks::delivery::{Token, leave};
use webhooks::share::{Crowding, PLACES, Place, Share, reserved_seconds, turn_seconds};
use webhooks::{Schedule, Wait};

use crate::bounds::Endpoints;
use crate::carried::carried;
use crate::invariants::Broken;
use crate::time::{Millis, SECOND};
use crate::worker::{Phase, Then, Worker};
use crate::world::World;

/// What a worker whose attempt needs a place knows of its account's share.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Turn {
    /// The places that looked free when it read the share.
    free: Vec<usize>,
    /// Whether the places were kept for retries then, and for long enough.
    is_reserved: bool,
    /// The place that it has taken.
    taken: Option<Taken>,
    /// Whether the endpoint has responded promptly to it.
    is_proven: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Taken {
    number: usize,
    place: Place,
}

/// Who has the places that belong to other endpoints.
const OTHERS: Token = Token(Uuid::nil());
/// Longer than any run.
const FOR_EVER: Millis = 1_000 * 24 * 60 * 60 * SECOND;

/// Returns the share with which a run starts.
pub(crate) fn share_with(endpoints: Endpoints) -> Share {
    let until = Timestamp::from_millis(FOR_EVER);
    let other = Some(Place { endpoint_id: Uuid::max().into(), holder: OTHERS, until });
    let is_taken = |number: usize| endpoints == Endpoints::Apart && number > 0;
    let places = std::array::from_fn(|number| other.filter(|_| is_taken(number)));
    Share { places, reserved_until: None }
}

impl Worker {
    /// Returns the worker with the place that it has taken. It begins its attempt.
    pub(crate) fn in_place(self, taken: Taken) -> Self {
        let (turn, phase) = (Some(Turn { taken: Some(taken), ..Turn::default() }), self.first_phase());
        Self { turn, phase, is_applied: false, ..self }
    }

    pub(crate) fn has_place(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.taken.is_some())
    }

    /// Notes whether the endpoint has responded promptly.
    pub(crate) fn after_response(self, is_prompt: bool) -> Self {
        let turn = self.turn.map(|turn| Turn { is_proven: is_prompt, ..turn });
        Self { turn, ..self }
    }

    /// What its clock will show after this many seconds.
    fn after(&self, seconds: u32) -> Timestamp {
        self.clock().plus_millis(Millis::from(seconds) * SECOND)
    }

    /// How long its attempt waits if it leaves.
    fn wait(&self) -> Wait {
        Schedule::default().wait(turn_seconds(&self.dispatch, Crowding::Unknown), self.clock())
    }

    /// Returns the first step of a worker that leaves.
    pub(crate) fn leaving(&self) -> Phase {
        match self.wait() {
            Wait::Delayed { .. } => Phase::CallAgain,
            Wait::Parked { .. } => self.recording_leave(),
        }
    }

    /// The step after its message was sent, or instead of it. What a delayed message goes on carrying is not stored.
    const fn recording_leave(&self) -> Phase {
        if self.carries() { Phase::LeaveNew } else { Phase::Leave }
    }
}

impl World {
    /// Returns what a worker reads of its account's share, unless its attempt needs no place.
    pub(crate) fn turn(&self, worker: &Worker) -> Option<Turn> {
        let (endpoint, now) = (worker.dispatch.endpoint_id, worker.clock());
        let turn = || Turn {
            free: self.share.free(endpoint, worker.dispatch.is_retry(), now),
            is_reserved: self.share.is_reserved(worker.after(reserved_seconds(&worker.dispatch).0)),
            ..Turn::default()
        };
        (!self.prompt.contains(&endpoint)).then(turn)
    }

    /// Takes the first of the places that looked free and is. Without one, the worker leaves.
    pub(crate) fn take_place(&mut self, worker: &Worker) -> Then {
        let (dispatch, now) = (&worker.dispatch, worker.clock());
        let is_there = self.endpoint.is_some();
        let free = self.share.free(dispatch.endpoint_id, dispatch.is_retry(), now);
        let mut seen = worker.turn.iter().flat_map(|turn| &turn.free);
        if let Some(&number) = seen.find(|number| is_there && free.contains(number)) {
            let place = Place::new(dispatch.endpoint_id, worker.lease, now);
            self.share.places[number] = Some(place);
            let is_kept = self.share.reserved_until.is_some_and(|until| until >= now);
            self.check(dispatch.is_retry() || !is_kept, Broken::OutOfTurn);
            return Then::Take(Taken { number, place });
        }
        let is_reserved = worker.turn.as_ref().is_some_and(|turn| turn.is_reserved);
        Then::Go(if dispatch.is_retry() && !is_reserved { Phase::Reserve } else { worker.leaving() })
    }

    /// Keeps the places for retries. An earlier reservation is not shortened.
    pub(crate) fn reserve(&mut self, worker: &Worker) -> Then {
        let until = worker.after(reserved_seconds(&worker.dispatch).1);
        if self.endpoint.is_some() {
            self.share.reserved_until = self.share.reserved_until.max(Some(until));
        }
        Then::Go(worker.leaving())
    }

    /// Sends the message that brings the attempt back. It is void until the leave is recorded.
    pub(crate) fn call_again(&mut self, worker: &Worker) -> Then {
        if let Wait::Delayed { seconds } = worker.wait() {
            if worker.carries() {
                self.send_carrying(carried(&worker.dispatch).after_leaving().dispatch(), seconds);
                return Then::Done;
            }
            self.send(worker.dispatch.after_leaving(worker.lease), seconds);
        }
        Then::Go(worker.recording_leave())
    }

    /// Stores a delivery as it waits for a place. If it is stored already, it leaves as any other.
    pub(crate) fn leave_new(&mut self, worker: &Worker) -> Then {
        let carried = carried(&worker.dispatch);
        let waiting = carried.waiting(worker.lease, worker.wait(), Schedule::default(), worker.clock());
        if self.put_delivery(waiting).is_none() { Then::Done } else { Then::Go(Phase::Leave) }
    }

    /// Records that the attempt has left. If the delivery has moved on, or somebody is making the attempt, there is nothing
    /// to record. But before a message that carries the delivery goes, the delivery gets a wake-up.
    pub(crate) fn leave(&mut self, worker: &Worker) -> Then {
        let step = leave(&worker.dispatch, worker.lease, worker.wait(), Schedule::default(), worker.clock());
        let (applied, _) = self.write_for(worker, &step);
        if !applied && worker.carries() { Then::Go(Phase::Watch) } else { Then::Done }
    }

    /// Leaves the worker's place, unless somebody else has it meanwhile.
    pub(crate) fn leave_place(&mut self, worker: &Worker) -> Then {
        let turn = worker.turn.as_ref().filter(|_| self.endpoint.is_some());
        if let Some(Turn { taken: Some(Taken { number, place }), is_proven, .. }) = turn
            && self.share.places[*number].is_some_and(|found| found.holder == place.holder)
        {
            self.share.places[*number] = None;
            self.prompt.extend(is_proven.then_some(place.endpoint_id));
        }
        Then::Done
    }

    /// An attempt that needs a place has one. At most one of them is under way per endpoint, and at most `PLACES` per
    /// account.
    pub(crate) fn check_places(&mut self, worker: &Worker) {
        if worker.turn.is_none() {
            return;
        }
        let others = self.workers.iter().filter(|other| other.phase == Phase::Post && other.has_place());
        let endpoints: Vec<EndpointId> = others.map(|other| other.dispatch.endpoint_id).collect();
        let elsewhere = self.share.places.iter().flatten().filter(|place| place.holder == OTHERS).count();
        let is_alone = !endpoints.contains(&worker.dispatch.endpoint_id);
        let is_in_share = endpoints.len() + elsewhere < PLACES;
        self.check(worker.has_place() && is_alone && is_in_share, Broken::Crowded);
    }
}
