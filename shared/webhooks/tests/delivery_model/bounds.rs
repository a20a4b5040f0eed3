//! The bounds of a run: how much can happen in it.

use crate::actions::{Action, Luck};
use crate::run::RunLuck;
use crate::time::{Millis, SECOND};
use crate::worker::Response;

/// What a run starts with, and what can go wrong in it.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// How each delivery starts.
    pub(crate) starts: Vec<Start>,
    pub(crate) endpoint: Endpoint,
    /// How many messages can be handled at the same time, those of the drain not counted.
    pub(crate) workers: usize,
    pub(crate) clocks: Clocks,
    /// How often a message is received before the queue gives it up. `None` if that is more often than workers crash.
    pub(crate) max_receives: Option<u32>,
    pub(crate) left: Left,
}

/// By how many milliseconds clocks can be wrong. Each process has one of these errors.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    /// Of workers, and of operators.
    pub(crate) workers: Vec<Millis>,
    pub(crate) runs: Vec<Millis>,
    pub(crate) sweeps: Vec<Millis>,
}

/// How a delivery starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// It is not stored: its first message carries it.
    Carried,
    /// It is stored with this number of failed attempts, and its next one is due. A message calls for that, unless the
    /// attempt is parked.
    After(u32),
}

/// How the endpoint looks to whoever receives a message for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Prompt: messages lead to attempts.
    Prompt,
    /// Not prompt: what messages call for waits for the drain.
    Unproven,
    /// Now one, now the other.
    Either,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    /// An attempt fails.
    pub(crate) failures: u8,
    /// A process ends between two steps, or between a write and its answer.
    pub(crate) crashes: u8,
    /// An answer does not arrive, and the write is repeated or given up.
    pub(crate) lost_answers: u8,
    /// A write takes effect after its process has ended.
    pub(crate) late_writes: u8,
    /// A message comes twice.
    pub(crate) duplicates: u8,
    /// A message never comes.
    pub(crate) losses: u8,
    /// A message comes late.
    pub(crate) delays: u8,
    /// The index does not show what was written last.
    pub(crate) lags: u8,
    /// A run of the drain has no time left while deliveries are due.
    pub(crate) hand_ons: u8,
    /// A sweep begins while another one is calling the same drain.
    pub(crate) overlaps: u8,
    pub(crate) disables: u8,
    pub(crate) enables: u8,
    /// The endpoint gets another URL.
    pub(crate) moves: u8,
    pub(crate) resends: u8,
    pub(crate) removals: u8,
}

/// The errors of a wrong clock: thirty seconds behind or ahead.
const WRONG: [Millis; 2] = [-30 * SECOND, 30 * SECOND];

impl Bounds {
    /// One delivery with `failed` failed attempts to a prompt endpoint, and two workers whose clocks are right.
    pub(crate) fn after(failed: u32, left: Left) -> Self {
        let (starts, endpoint) = (vec![Start::After(failed)], Endpoint::Prompt);
        Self { starts, endpoint, workers: 2, clocks: Clocks::all(&[0]), max_receives: None, left }
    }

    /// Like `after`, but with clocks that may be wrong.
    pub(crate) fn skewed(failed: u32, left: Left) -> Self {
        Self::after(failed, left).with_wrong_clocks()
    }

    /// One delivery that its first message carries to a prompt endpoint, and two workers whose clocks are right.
    pub(crate) fn carried(left: Left) -> Self {
        Self { starts: vec![Start::Carried], ..Self::after(0, left) }
    }

    /// Deliveries that wait for the drain, and two workers whose clocks are right.
    pub(crate) fn drained(starts: &[Start], left: Left) -> Self {
        Self { starts: starts.to_vec(), endpoint: Endpoint::Unproven, ..Self::after(0, left) }
    }

    pub(crate) fn with_wrong_clocks(self) -> Self {
        Self { clocks: Clocks::all(&WRONG), ..self }
    }

    /// Returns these bounds with every way in which the clocks of all workers, of all runs and of all sweeps can be wrong.
    /// That is less than `with_wrong_clocks` plays, in much less time.
    pub(crate) fn with_each_wrong_clock(&self) -> impl Iterator<Item = Self> {
        (0..8).map(|number: usize| {
            let wrong = |bit: usize| vec![WRONG[number >> bit & 1]];
            let clocks = Clocks { workers: wrong(0), runs: wrong(1), sweeps: wrong(2) };
            Self { clocks, ..self.clone() }
        })
    }

    /// How the endpoint can look to whoever receives a message.
    pub(crate) const fn looks(&self) -> &'static [bool] {
        match self.endpoint {
            Endpoint::Prompt => &[true],
            Endpoint::Unproven => &[false],
            Endpoint::Either => &[true, false],
        }
    }
}

impl Clocks {
    fn all(errors: &[Millis]) -> Self {
        Self { workers: errors.into(), runs: errors.into(), sweeps: errors.into() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Millis> {
        self.workers.iter().chain(&self.runs).chain(&self.sweeps).copied()
    }
}

impl Left {
    /// The counter that an action uses up, if it uses one up.
    pub(crate) fn of(&mut self, action: &Action) -> Option<&mut u8> {
        match action {
            Action::Answer { response: Response::Failed, .. } => Some(&mut self.failures),
            Action::Work { luck: Luck::Crash { .. }, .. }
            | Action::Run { luck: RunLuck::Crash, .. }
            | Action::CrashSweep { .. }
            | Action::CrashOperator { .. } => Some(&mut self.crashes),
            Action::Work { luck: Luck::Repeat | Luck::Away { .. }, .. } => Some(&mut self.lost_answers),
            Action::Work { luck: Luck::Late, .. } | Action::Run { luck: RunLuck::Late, .. } => {
                Some(&mut self.late_writes)
            }
            Action::Run { luck: RunLuck::Lag(_), .. } => Some(&mut self.lags),
            Action::Run { luck: RunLuck::HandOn, .. } => Some(&mut self.hand_ons),
            Action::Duplicate { .. } | Action::DuplicateCall { .. } => Some(&mut self.duplicates),
            Action::Lose { .. } | Action::LoseCall { .. } => Some(&mut self.losses),
            Action::Delay { .. } | Action::DelayCall { .. } => Some(&mut self.delays),
            Action::Disable => Some(&mut self.disables),
            Action::Enable => Some(&mut self.enables),
            Action::Move => Some(&mut self.moves),
            Action::BeginResend { .. } => Some(&mut self.resends),
            Action::BeginRemoval { .. } => Some(&mut self.removals),
            Action::Advance
            | Action::Receive { .. }
            | Action::BeginRun { .. }
            | Action::Work { luck: Luck::Good, .. }
            | Action::Run { luck: RunLuck::Good, .. }
            | Action::Answer { response: Response::Acknowledged, .. }
            | Action::BeginSweep { .. }
            | Action::Sweep { .. }
            | Action::Operate { .. } => None,
        }
    }
}
