//! A run of the drain, in the steps of `functions/webhook`. Here it makes its attempts one after another: attempts of
//! one run differ in nothing from attempts of several workers.

use common::resources::WEBHOOK_TIMEOUT;
use common::timestamp::Timestamp;
use webhooks::delivery::{MAX_CLAIMS, Status, Token, claim_due, end_for_removed_endpoint};

use crate::drain::{DrainRow, Rest};
use crate::invariants::Broken;
use crate::time::{Millis, SECOND};
use crate::worker::{Failed, Then, Worker};
use crate::world::{EndpointSwitch, Kind, QueuedMessage, Shown, World};

/// The function's time-out.
const TIMEOUT: Millis = WEBHOOK_TIMEOUT.as_secs().cast_signed() * SECOND;

/// A message that calls the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DrainCall {
    pub(crate) visible_at: Millis,
    pub(crate) token: Token,
}

/// A run that has begun.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Run {
    /// The row as it read it last. Its token is the run's.
    pub(crate) seen: DrainRow,
    pub(crate) began_at: Millis,
    pub(crate) skew: Millis,
    pub(crate) step: RunStep,
    /// What its clock showed when it looked last.
    looked_at: Timestamp,
    /// When the next delivery is due, as far as the index showed.
    next: Option<Timestamp>,
    /// Whether it has tried to change a delivery since it looked last.
    has_worked: bool,
    /// Whether a later run has to look again, because something failed or the index cannot show everything yet.
    pub(crate) is_unsure: bool,
    /// It has died, and its last write is still on the way.
    pub(crate) is_late: bool,
}

/// A run's next step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RunStep {
    /// It lists the deliveries of the removed endpoint.
    List,
    /// It ends these. Whoever has read the endpoint before its removal may still store a delivery, and call the drain. So
    /// a run forgets the endpoint only if the last call is long ago.
    Clear { listed: Vec<usize>, is_settled: bool },
    /// It notes that all of them have ended.
    Forget,
    /// It looks into the index.
    Look,
    /// It begins what was due in the index, each with the wake-up that it found.
    Make { due: Vec<(usize, Timestamp)>, endpoint: Option<EndpointSwitch> },
    /// It ends, for long if it is sure that it has seen everything.
    Rest,
    /// It ends for a while.
    Nap,
    /// It hands on what is left.
    HandOn,
    /// It sends the message for that.
    Send(Token),
}

/// The ways in which a run's step can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunLuck {
    Good,
    /// The index lags: it shows what was stored before, or nothing of a delivery that has changed.
    Lag(Shown),
    /// There is no time left.
    HandOn,
    /// The run dies. That it dies after a step is the same as that it dies before the next one.
    Crash,
    /// The run dies, and its last write takes effect later.
    Late,
}

/// Every kind of luck.
pub(crate) const RUN_LUCK: [RunLuck; 6] = [
    RunLuck::Good,
    RunLuck::Lag(Shown::Before),
    RunLuck::Lag(Shown::Nothing),
    RunLuck::HandOn,
    RunLuck::Crash,
    RunLuck::Late,
];

impl World {
    pub(crate) fn send_call(&mut self, token: Token) {
        self.put_call(DrainCall { visible_at: self.now, token });
    }

    pub(crate) fn put_call(&mut self, call: DrainCall) {
        let place = self.calls.partition_point(|other| *other <= call);
        self.calls.insert(place, call);
    }

    /// Somebody receives a message and begins a run, unless the message is void. If they die before that, the message is
    /// only late.
    pub(crate) fn begin_run(&mut self, call: usize, skew: Millis) {
        let mine = self.free_token();
        let DrainCall { token, .. } = self.calls.remove(call);
        let now = self.clock(skew);
        let Some(seen) = self.begin_drain(token, mine, now) else { return };
        self.check(self.runs.iter().all(|run| run.is_late), Broken::TwoRuns);
        let step = if seen.has_removed { RunStep::List } else { RunStep::Look };
        self.runs.push(Run {
            seen,
            began_at: self.now,
            skew,
            step,
            looked_at: now,
            next: None,
            has_worked: false,
            is_unsure: false,
            is_late: false,
        });
        self.runs.sort_unstable();
    }

    pub(crate) fn delay_call(&mut self, call: usize, by: Millis) {
        let delayed = DrainCall { visible_at: self.now + by, ..self.calls.remove(call) };
        self.put_call(delayed);
    }

    /// Makes a run's next step with this luck. Returns `None` if the step cannot go that way.
    pub(crate) fn run(&mut self, index: usize, luck: RunLuck) -> Option<()> {
        let run = self.runs.remove(index);
        let is_waiting = self.workers.iter().any(|worker| worker.is_of(&run) && !worker.is_late);
        let is_last = matches!(run.step, RunStep::Rest | RunStep::Nap | RunStep::HandOn);
        let can_be = match luck {
            // A run that hands on does not wait for its last attempts before.
            RunLuck::Good => !is_waiting || matches!(run.step, RunStep::HandOn | RunStep::Send(_)),
            RunLuck::Lag(_) => !run.is_late && self.is_lagging() && matches!(run.step, RunStep::List | RunStep::Look),
            RunLuck::HandOn => !run.is_late && matches!(run.step, RunStep::Look | RunStep::Make { .. }),
            RunLuck::Crash => !run.is_late,
            RunLuck::Late => !run.is_late && is_last,
        };
        if !can_be {
            return None;
        }
        match luck {
            RunLuck::Good => self.make(&run, Shown::Now).into_iter().for_each(|run| self.keep_on(run)),
            RunLuck::Lag(shown) => self.make(&run, shown).into_iter().for_each(|run| self.keep_on(run)),
            RunLuck::HandOn => {
                let last = self.workers.iter_mut().filter(|worker| worker.is_of(&run));
                last.for_each(|worker| worker.has_drain = false);
                self.keep_on(Run { step: RunStep::HandOn, ..run });
            }
            RunLuck::Crash => self.end_with(run.seen.token),
            RunLuck::Late => {
                self.end_with(run.seen.token);
                self.keep_on(Run { is_late: true, ..run });
            }
        }
        Some(())
    }

    /// A run's process dies, and its attempts with it.
    pub(crate) fn end_with(&mut self, token: Token) {
        self.runs.retain(|run| run.seen.token != token || run.is_late);
        self.workers.retain(|worker| worker.run != Some(token) || worker.is_late);
    }

    fn keep_on(&mut self, run: Run) {
        self.runs.push(run);
        self.runs.sort_unstable();
    }

    /// Makes a run's step. Returns the run if it goes on.
    fn make(&mut self, run: &Run, shown: Shown) -> Option<Run> {
        let run = run.clone();
        let now = self.clock(run.skew);
        let step = match run.step.clone() {
            RunStep::List => {
                let listed = (0..self.deliveries.len()).filter(|&index| self.lists(index, shown)).collect();
                let is_settled = run.seen.is_settled(now);
                RunStep::Clear { listed, is_settled }
            }
            RunStep::Clear { mut listed, is_settled } => match listed.pop() {
                Some(delivery) => {
                    let is_unsure = !self.clear(delivery, now) || run.is_unsure;
                    return Some(Run { step: RunStep::Clear { listed, is_settled }, is_unsure, ..run });
                }
                None if run.is_unsure || !is_settled => RunStep::Look,
                None => RunStep::Forget,
            },
            RunStep::Forget => {
                self.drain.iter_mut().for_each(|row| row.has_removed = false);
                let seen = DrainRow { has_removed: false, ..run.seen };
                return Some(Run { seen, step: RunStep::Look, ..run });
            }
            RunStep::Look => return Some(self.look(&run, shown)),
            RunStep::Make { mut due, endpoint } => {
                let Some((delivery, wake_at)) = due.pop() else {
                    let has_all = !run.is_unsure && !run.seen.has_removed;
                    let is_sure = has_all && run.seen.is_settled(run.looked_at);
                    let at_rest = if is_sure { RunStep::Rest } else { RunStep::Nap };
                    return Some(Run { step: if run.has_worked { RunStep::Look } else { at_rest }, ..run });
                };
                return Some(self.make_due(Run { step: RunStep::Make { due, endpoint }, ..run }, (delivery, wake_at)));
            }
            RunStep::Rest => {
                let rest = run.next.map_or(Rest::Over, Rest::Until);
                let has_ended = self.rest_drain(&run.seen, rest, true, None) || run.is_late;
                return (!has_ended).then_some(Run { step: RunStep::Nap, ..run });
            }
            RunStep::Nap => return self.nap(&run, now),
            RunStep::HandOn => {
                let next = self.free_token();
                let still_has = self.hand_on_drain(&run.seen, next, now);
                return (still_has && !run.is_late).then_some(Run { step: RunStep::Send(next), ..run });
            }
            RunStep::Send(token) => {
                self.send_call(token);
                return None;
            }
        };
        Some(Run { step, ..run })
    }

    /// Looks for what is due, and for when something will be.
    fn look(&self, run: &Run, shown: Shown) -> Run {
        let now = self.clock(run.skew);
        let entry = |index: usize| Some((index, self.shows(index, shown)?));
        let all: Vec<(usize, Timestamp)> = (0..self.deliveries.len()).filter_map(entry).collect();
        let next = all.iter().map(|&(_, wake_at)| wake_at).filter(|wake_at| *wake_at > now).min();
        let due = all.into_iter().filter(|(_, wake_at)| *wake_at <= now).collect();
        let Some(endpoint) = self.endpoint else {
            // It looks for what waits for the endpoints that there are.
            let step = RunStep::Make { due: Vec::new(), endpoint: None };
            return Run { step, next: None, has_worked: false, looked_at: now, ..run.clone() };
        };
        let step = RunStep::Make { due, endpoint: Some(endpoint) };
        Run { step, next, has_worked: false, looked_at: now, ..run.clone() }
    }

    /// Begins the attempt of a delivery that was found due, or holds the delivery.
    fn make_due(&mut self, run: Run, (delivery, wake_at): (usize, Timestamp)) -> Run {
        let RunStep::Make { endpoint: Some(endpoint), .. } = run.step else { return run };
        let (now, lease) = (run.clock(), self.free_token());
        let dispatch = Self::next_dispatch(delivery, self.stored(delivery).clone());
        let message = QueuedMessage { visible_at: self.now, dispatch, kind: Kind::Attempt, receives: 0 };
        let worker = Worker::new(message, run.skew, lease, run.began_at);
        let worker = Worker { run: Some(run.seen.token), has_drain: true, seen: Some(endpoint), ..worker };
        if !endpoint.is_on {
            let then = self.hold(&worker);
            if let Then::Postpone(seconds) = then {
                self.send(dispatch, seconds);
            }
            let is_unsure = run.is_unsure || self.stored(delivery).status == Status::Pending;
            return Run { is_unsure, ..run };
        }
        let (is_made, found) = self.write(delivery, &claim_due(wake_at, lease, now));
        if !is_made {
            return Run { is_unsure: true, ..run };
        }
        let worker = Worker { dispatch: Self::next_dispatch(delivery, found.clone()), ..worker };
        if found.claims >= MAX_CLAIMS {
            let phase = worker.failed(Failed { at: self.now, is_lost: true });
            self.go_on(Worker { phase, ..worker });
        } else {
            self.begin_post(&worker);
        }
        Run { has_worked: true, ..run }
    }

    /// Notes that the run of a worker cannot be sure of what waits.
    pub(crate) fn doubt(&mut self, worker: &Worker) {
        let runs = self.runs.iter_mut().filter(|run| worker.is_of(run));
        runs.for_each(|run| run.is_unsure = true);
    }

    /// Ends a run for a while. If it was called meanwhile, it looks again.
    fn nap(&mut self, run: &Run, now: Timestamp) -> Option<Run> {
        let called_at = Some(now).filter(|_| run.is_unsure);
        if self.rest_drain(&run.seen, DrainRow::nap(run.next, now), false, called_at) || run.is_late {
            return None;
        }
        let seen = self.drain.filter(|row| row.token == run.seen.token)?;
        let step = if seen.has_removed { RunStep::List } else { RunStep::Look };
        Some(Run { seen, step, ..run.clone() })
    }

    /// Ends a delivery of the removed endpoint. Returns false if an attempt is under way.
    fn clear(&mut self, delivery: usize, now: Timestamp) -> bool {
        let Some(step) = end_for_removed_endpoint(self.stored(delivery), now) else { return true };
        let is_made = self.write(delivery, &step).0;
        self.check(self.endpoint.is_none(), Broken::EndedWhileThere);
        is_made
    }
}

impl Run {
    /// The tokens that it may still use.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        let sent = if let RunStep::Send(token) = self.step { Some(token) } else { None };
        sent.into_iter().chain([self.seen.token])
    }

    /// When its time-out ends it.
    pub(crate) fn until(&self) -> Millis {
        self.began_at + TIMEOUT
    }

    /// What its clock showed when it began.
    fn clock(&self) -> Timestamp {
        Timestamp::from_millis(self.began_at + self.skew)
    }
}
