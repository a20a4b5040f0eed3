//! The actions that can happen next in a state, and how the steps of a worker can go wrong.

use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::run::{RUN_LUCK, RunLuck};
use crate::time::{Millis, SECOND};
use crate::worker::{Failed, Phase, Response, Then, Worker};
use crate::world::{QueuedMessage, World};
use common::resources::Queue;
use webhooks::delivery::Status;

/// How late a delayed message comes: after an attempt's lease has ended, while a sweep takes it for lost, or after that.
const LATE: [Millis; 3] = [100 * SECOND, 295 * SECOND, 400 * SECOND];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Advance,
    Receive { message: usize, skew: Millis, is_prompt: bool },
    Duplicate { message: usize },
    Lose { message: usize },
    Delay { message: usize, by: Millis },
    BeginRun { call: usize, skew: Millis },
    DuplicateCall { call: usize },
    LoseCall { call: usize },
    DelayCall { call: usize, by: Millis },
    Run { run: usize, luck: RunLuck },
    Work { worker: usize, luck: Luck },
    Answer { worker: usize, response: Response },
    BeginSweep { skew: Millis },
    Sweep { sweeper: usize },
    CrashSweep { sweeper: usize },
    Disable,
    Enable,
    Move,
    BeginResend { delivery: usize, skew: Millis },
    BeginRemoval { skew: Millis },
    Operate { operator: usize },
    CrashOperator { operator: usize },
}

impl Model for Bounds {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken.is_some() {
            return;
        }
        actions.push(Action::Advance);
        for (message, _) in world.received(self) {
            for &is_prompt in self.looks() {
                actions.extend(self.clocks.workers.iter().map(|&skew| Action::Receive { message, skew, is_prompt }));
            }
            actions.push(Action::Duplicate { message });
            actions.extend(Some(Action::Lose { message }).filter(|_| !world.is_needed(message)));
            actions.extend(LATE.map(|by| Action::Delay { message, by }));
        }
        if let Some(call) = world.next_call() {
            actions.extend(self.clocks.runs.iter().map(|&skew| Action::BeginRun { call, skew }));
            actions.extend([Action::DuplicateCall { call }, Action::LoseCall { call }]);
            actions.extend(LATE.map(|by| Action::DelayCall { call, by }));
        }
        for run in 0..world.runs.len() {
            actions.extend(RUN_LUCK.map(|luck| Action::Run { run, luck }));
        }
        for (index, worker) in world.workers.iter().enumerate() {
            let responses = [Response::Acknowledged, Response::Failed];
            let answers = responses.map(|response| Action::Answer { worker: index, response });
            actions.extend(answers.into_iter().filter(|_| worker.phase == Phase::Post));
            actions.extend(LUCK.map(|luck| Action::Work { worker: index, luck }));
        }
        let due = self.clocks.sweeps.iter().copied().filter(|&skew| world.is_due(skew));
        actions.extend(due.map(|skew| Action::BeginSweep { skew }));
        for delivery in 0..world.deliveries.len() {
            actions.extend(self.clocks.workers.iter().map(|&skew| Action::BeginResend { delivery, skew }));
        }
        for sweeper in 0..world.sweepers.len() {
            actions.extend([Action::Sweep { sweeper }, Action::CrashSweep { sweeper }]);
        }
        for operator in 0..world.operators.len() {
            actions.extend([Action::Operate { operator }, Action::CrashOperator { operator }]);
        }
        actions.extend([Action::Disable, Action::Enable, Action::Move]);
        actions.extend(self.clocks.workers.iter().map(|&skew| Action::BeginRemoval { skew }));
        let mut left = world.left;
        if world.is_over() {
            // Messages still on their way change nothing now, so one order of them is enough.
            actions.retain(|action| left.of(action).is_none());
            actions.truncate(2);
        }
        actions.retain(|action| left.of(action).is_none_or(|left| *left > 0));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut world = world.clone();
        if let Some(left) = world.left.of(&action) {
            *left -= 1;
        }
        match action {
            Action::Advance => world.advance(self).then_some(())?,
            Action::Receive { message, skew, is_prompt } => {
                world.receive(message, (skew, is_prompt), self.max_receives);
            }
            Action::Duplicate { message } => world.duplicate(message),
            Action::Lose { message } => world.lose(message),
            Action::Delay { message, by } => world.delay(message, by),
            Action::BeginRun { call, skew } => world.begin_run(call, skew),
            Action::DuplicateCall { call } => world.put_call(world.calls[call]),
            Action::LoseCall { call } => drop(world.calls.remove(call)),
            Action::DelayCall { call, by } => world.delay_call(call, by),
            Action::Run { run, luck } => world.run(run, luck)?,
            Action::Work { worker, luck } => world.work(worker, luck)?,
            Action::Answer { worker, response } => world.answer(worker, response),
            Action::BeginSweep { skew } => world.begin_sweep(skew)?,
            Action::Sweep { sweeper } => world.sweep(sweeper),
            Action::CrashSweep { sweeper } => world.crash_sweep(sweeper),
            Action::Disable => world.disable()?,
            Action::Enable => world.enable()?,
            Action::Move => world.move_endpoint()?,
            Action::BeginResend { delivery, skew } => world.begin_resend(delivery, skew)?,
            Action::BeginRemoval { skew } => world.begin_removal(skew)?,
            Action::Operate { operator } => world.operate(operator),
            Action::CrashOperator { operator } => world.crash_operator(operator),
        }
        world.check_wake_ups();
        world.check_rest();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::invariants::properties()
    }
}

impl World {
    /// Whether every delivery has settled for good.
    fn is_over(&self) -> bool {
        let is_final = |status| matches!(status, Some(Status::Delivered | Status::Failed));
        let is_operated = !self.operators.is_empty() || self.left.resends > 0;
        !is_operated && self.deliveries.iter().all(|delivery| is_final(delivery.status()))
    }

    /// The message that calls the drain next, if it has come. Of several, each comes first in some order: they differ in
    /// their tokens, and all but one are void.
    fn next_call(&self) -> Option<usize> {
        self.calls.first().is_some_and(|call| call.visible_at <= self.now).then_some(0)
    }

    /// The messages that a free worker can receive now, each distinct one once.
    fn received(&self, bounds: &Bounds) -> impl Iterator<Item = (usize, &QueuedMessage)> {
        let is_free = self.has_free_worker(bounds);
        let visible = self.queue.iter().enumerate().take_while(|(_, message)| message.visible_at <= self.now);
        visible.filter(move |(index, message)| is_free && (*index == 0 || self.queue[index - 1] != **message))
    }

    /// The endpoint responds.
    pub(crate) fn answer(&mut self, index: usize, response: Response) {
        let worker = self.workers.remove(index);
        let failed = Failed { at: self.now, is_lost: false };
        let phase = match response {
            Response::Acknowledged => Phase::Succeed,
            Response::Failed => worker.failed(failed),
        };
        self.go_on(Worker { phase, ..worker });
    }

    /// Makes a worker's next step with this luck. Returns `None` if the step cannot go that way.
    pub(crate) fn work(&mut self, index: usize, luck: Luck) -> Option<()> {
        let worker = self.workers.remove(index);
        let can_be = match luck {
            Luck::Good => worker.phase != Phase::Post,
            Luck::Crash { is_made: false } => !worker.is_late,
            Luck::Crash { is_made: true } | Luck::Repeat | Luck::Away { .. } | Luck::Late => {
                !worker.is_late && worker.phase != Phase::Post
            }
        };
        if !can_be {
            return None;
        }
        match luck {
            Luck::Good => {
                let then = self.step(&worker);
                self.follow(&worker, then);
            }
            Luck::Crash { is_made } => {
                self.step_if(is_made, &worker);
                self.come_back(&worker);
            }
            Luck::Repeat => {
                self.step(&worker);
                self.go_on(Worker { is_applied: true, ..worker });
            }
            Luck::Away { is_made } => {
                self.step_if(is_made, &worker);
                self.follow(&worker, worker.unanswered());
            }
            Luck::Late => {
                self.come_back(&worker);
                self.go_on(Worker { is_late: true, ..worker });
            }
        }
        Some(())
    }

    fn step_if(&mut self, is_made: bool, worker: &Worker) {
        if is_made {
            self.step(worker);
        }
    }

    fn follow(&mut self, worker: &Worker, then: Then) {
        match then {
            _ if worker.is_late => {}
            // A run looks again.
            Then::Done => {}
            Then::Postpone(_) if worker.run.is_some() => self.doubt(worker),
            Then::Read => self.go_on(self.read(worker.clone())),
            Then::Postpone(seconds) => self.postpone(worker, seconds),
            Then::Go(Phase::Post) => self.begin_post(worker),
            Then::Go(phase) => self.go_on(Worker { phase, is_applied: false, ..worker.clone() }),
        }
    }

    /// A worker reads its account.
    pub(crate) fn read(&self, worker: Worker) -> Worker {
        worker.after_reading(self.endpoint)
    }

    pub(crate) fn go_on(&mut self, worker: Worker) {
        self.workers.push(worker);
        self.workers.sort_unstable();
    }

    /// Makes the worker's message visible again once its visibility time-out is over. If it belongs to a run, the whole
    /// run dies.
    fn come_back(&mut self, worker: &Worker) {
        if let Some(run) = worker.run {
            self.end_with(run);
            return;
        }
        let Worker { dispatch, kind, receives, .. } = *worker;
        self.put(QueuedMessage { visible_at: worker.received_at + VISIBILITY, dispatch, kind, receives });
    }
}

/// The ways in which a worker's step can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Luck {
    Good,
    /// The worker dies, before or after it makes the step.
    Crash {
        is_made: bool,
    },
    /// The step is made twice.
    Repeat,
    /// The worker does not learn whether the step was made, and postpones the message.
    Away {
        is_made: bool,
    },
    /// The worker dies, and the step takes effect later.
    Late,
}

/// Every kind of luck.
const LUCK: [Luck; 7] = [
    Luck::Good,
    Luck::Crash { is_made: false },
    Luck::Crash { is_made: true },
    Luck::Repeat,
    Luck::Away { is_made: false },
    Luck::Away { is_made: true },
    Luck::Late,
];

/// A received message that is not acknowledged comes back after this time.
const VISIBILITY: Millis = Queue::WebhooksRetry.visibility_seconds().cast_signed() * SECOND;
