//! An operator who switches endpoints, resends deliveries and removes endpoints, in the steps of `admin::webhooks`.

use types::timestamp::Timestamp;
use webhooks::Schedule;
use webhooks::delivery::{Dispatch, Progress, Status, Token, end_for_removed_endpoint, resend};

use crate::invariants::Broken;
use crate::time::{Millis, SECOND};
use crate::world::{EndpointSwitch, World};

/// The longest time that a step of a command takes. Each step starts it anew.
const PATIENCE: Millis = 25 * SECOND;

/// A command that takes several steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operator {
    task: Task,
    clock: Timestamp,
    pub(crate) until: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Task {
    /// The new round is still to be written.
    Resend { delivery: usize, seen: Progress, token: Token },
    /// The new round is written; its message is still to be sent.
    Call(Dispatch),
    /// The endpoint is removed; this delivery and the ones after it are still to be ended.
    Cease { delivery: usize, seen: Option<Progress> },
}

impl Operator {
    /// The token that it may still write or send.
    pub(crate) fn token(&self) -> Option<Token> {
        match &self.task {
            Task::Resend { token, .. } => Some(*token),
            Task::Call(dispatch) => Some(dispatch.token),
            Task::Cease { .. } => None,
        }
    }
}

impl World {
    pub(crate) fn disable(&mut self) -> Option<()> {
        let endpoint = self.endpoint.as_mut().filter(|endpoint| endpoint.is_on)?;
        endpoint.is_on = false;
        Some(())
    }

    pub(crate) fn enable(&mut self) -> Option<()> {
        let endpoint = self.endpoint.filter(|endpoint| !endpoint.is_on)?;
        self.endpoint = Some(EndpointSwitch { is_on: true, epoch: endpoint.epoch + 1 });
        Some(())
    }

    pub(crate) fn begin_resend(&mut self, delivery: usize, skew: Millis) -> Option<()> {
        self.endpoint.filter(|endpoint| endpoint.is_on)?;
        let (seen, token) = (self.deliveries[delivery].progress.clone()?, self.free_token());
        self.command(Task::Resend { delivery, seen, token }, skew);
        Some(())
    }

    pub(crate) fn begin_removal(&mut self, skew: Millis) -> Option<()> {
        self.endpoint.take()?;
        self.command(Task::Cease { delivery: 0, seen: self.deliveries[0].progress.clone() }, skew);
        Some(())
    }

    fn command(&mut self, task: Task, skew: Millis) {
        self.operators.push(Operator { task, clock: self.clock(skew), until: self.now + PATIENCE });
    }

    /// Makes the next step of a command.
    pub(crate) fn operate(&mut self, operator: usize) {
        let Operator { task, clock, until } = self.operators.remove(operator);
        let skew = clock.millis() - (until - PATIENCE);
        match task {
            Task::Resend { delivery, seen, token } => {
                if self.write(delivery, &resend(&seen, token, Schedule::default(), clock)).0 {
                    let next = self.next_dispatch(delivery, self.stored(delivery).clone());
                    self.command(Task::Call(next), skew);
                }
            }
            Task::Call(dispatch) => self.send(dispatch, 0),
            Task::Cease { delivery, seen } => {
                if let Some(step) = seen.and_then(|seen| end_for_removed_endpoint(&seen, clock))
                    && self.write(delivery, &step).0
                {
                    self.check(self.endpoint.is_none(), Broken::EndedWhileThere);
                }
                if let Some(next) = self.deliveries.get(delivery + 1) {
                    self.command(Task::Cease { delivery: delivery + 1, seen: next.progress.clone() }, skew);
                }
            }
        }
    }

    pub(crate) fn crash_operator(&mut self, operator: usize) {
        let Operator { task, .. } = self.operators.remove(operator);
        self.is_cut_short |= matches!(task, Task::Cease { .. });
    }

    /// Returns whether nobody is at work, and only a sweep could still happen.
    fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.workers.is_empty() && self.sweepers.is_empty() && self.operators.is_empty()
    }

    pub(crate) fn check_removal(&mut self) {
        if self.is_quiet() && self.endpoint.is_none() && !self.is_cut_short {
            let is_held = self.deliveries.iter().any(|delivery| delivery.status() == Some(Status::Held));
            self.check(!is_held, Broken::LeftBehind);
        }
    }
}
