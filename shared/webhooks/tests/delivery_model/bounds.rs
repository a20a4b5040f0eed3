//! The bounds of a run: how much can happen in it.

use crate::actions::Action;
use crate::luck::Luck;
use crate::time::{Millis, SECOND};
use crate::worker::Response;

/// What a run starts with, and what can go wrong in it.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// How each delivery starts.
    pub(crate) starts: Vec<Start>,
    pub(crate) endpoints: Endpoints,
    /// How many attempts can be made at the same time.
    pub(crate) workers: usize,
    /// By how many milliseconds a clock can be wrong.
    pub(crate) skews: Vec<Millis>,
    /// How often a message is received before the queue gives it up. `None` if that is more often than workers crash.
    pub(crate) max_receives: Option<u32>,
    pub(crate) left: Left,
}

/// How a delivery starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// It is not stored: its first message carries it.
    Carried,
    /// It is stored with this number of failed attempts, and a message calls for the next one.
    After(u32),
    /// It is stored, its first attempt has left this often, and a message calls for it again.
    Turned(u32),
}

/// Where the deliveries go, and what is known of that at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoints {
    /// All go to the same endpoint. It responds promptly, so attempts need no place.
    Prompt,
    /// All go to the same endpoint. It is not known to be prompt.
    Unproven,
    /// Each goes to an endpoint of its own. None is known to be prompt, and other endpoints have all places but one. The
    /// endpoints are switched together.
    Apart,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    /// An attempt fails, but the endpoint responds promptly.
    pub(crate) failures: u8,
    /// An attempt fails because the endpoint hangs.
    pub(crate) hangs: u8,
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
    /// A sweep begins while another one is working on the same delivery.
    pub(crate) overlaps: u8,
    pub(crate) disables: u8,
    pub(crate) enables: u8,
    pub(crate) resends: u8,
    pub(crate) removals: u8,
}

/// The errors of a wrong clock: thirty seconds behind or ahead.
const SKEWS: [Millis; 2] = [-30 * SECOND, 30 * SECOND];

impl Bounds {
    /// One delivery with `failed` failed attempts, and two workers whose clocks are right.
    pub(crate) fn after(failed: u32, left: Left) -> Self {
        let (starts, endpoints) = (vec![Start::After(failed)], Endpoints::Prompt);
        Self { starts, endpoints, workers: 2, skews: vec![0], max_receives: None, left }
    }

    /// Like `after`, but with clocks that may be wrong.
    pub(crate) fn skewed(failed: u32, left: Left) -> Self {
        Self::after(failed, left).with_wrong_clocks()
    }

    /// One delivery that its first message carries, and two workers whose clocks are right.
    pub(crate) fn carried(left: Left) -> Self {
        Self { starts: vec![Start::Carried], ..Self::after(0, left) }
    }

    /// Deliveries whose attempts need places, and two workers whose clocks are right.
    pub(crate) fn in_places(endpoints: Endpoints, starts: &[Start], left: Left) -> Self {
        Self { starts: starts.to_vec(), endpoints, ..Self::after(0, left) }
    }

    pub(crate) fn with_wrong_clocks(self) -> Self {
        Self { skews: SKEWS.into(), ..self }
    }
}

impl Left {
    /// The counter that an action uses up, if it uses one up.
    pub(crate) fn of(&mut self, action: &Action) -> Option<&mut u8> {
        match action {
            Action::Answer { response: Response::Refused, .. } => Some(&mut self.failures),
            Action::Answer { response: Response::Hung, .. } => Some(&mut self.hangs),
            Action::Work { luck: Luck::Crash { .. }, .. }
            | Action::CrashSweep { .. }
            | Action::CrashOperator { .. } => Some(&mut self.crashes),
            Action::Work { luck: Luck::Repeat | Luck::Away { .. }, .. } => Some(&mut self.lost_answers),
            Action::Work { luck: Luck::Late, .. } => Some(&mut self.late_writes),
            Action::Duplicate { .. } => Some(&mut self.duplicates),
            Action::Lose { .. } => Some(&mut self.losses),
            Action::Delay { .. } => Some(&mut self.delays),
            Action::Disable => Some(&mut self.disables),
            Action::Enable => Some(&mut self.enables),
            Action::BeginResend { .. } => Some(&mut self.resends),
            Action::BeginRemoval { .. } => Some(&mut self.removals),
            Action::Advance
            | Action::Receive { .. }
            | Action::Work { luck: Luck::Good, .. }
            | Action::Answer { response: Response::Acknowledged, .. }
            | Action::BeginSweep { .. }
            | Action::Sweep { .. }
            | Action::Operate { .. } => None,
        }
    }
}
