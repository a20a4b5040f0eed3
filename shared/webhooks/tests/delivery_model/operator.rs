//! An operator who switches endpoints, resends deliveries and removes endpoints, in the steps of `admin::webhooks`.

use common::resources::ACCOUNT_TIMEOUT;
use common::timestamp::Timestamp;
use webhooks::delivery::{Progress, Status, Token, resend};

use crate::drain::DrainRow;
use crate::invariants::Broken;
use crate::time::{Millis, SECOND};
use crate::world::{EndpointSwitch, World};

/// The longest time that a command takes.
const TIMEOUT: Millis = ACCOUNT_TIMEOUT.as_secs().cast_signed() * SECOND;

/// A command that takes several steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operator {
    step: OperatorStep,
    command: Command,
    skew: Millis,
    pub(crate) until: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Command {
    Resend { delivery: usize, seen: Progress, token: Token },
    Remove,
}

/// The next step of a command. It calls the drain before it writes as well: if it dies right after the write, the drain
/// still looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OperatorStep {
    CallBefore,
    Write,
    Call,
    Send(Token),
}

impl Operator {
    /// The tokens that it may still write or send.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        let written = if let Command::Resend { token, .. } = self.command { Some(token) } else { None };
        let sent = match self.step {
            OperatorStep::Send(token) => Some(token),
            OperatorStep::CallBefore | OperatorStep::Write | OperatorStep::Call => None,
        };
        written.into_iter().chain(sent)
    }

    /// Whether it has written, and calls the drain next.
    pub(crate) fn will_call(&self) -> bool {
        self.step == OperatorStep::Call
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

    /// The endpoint gets another URL.
    pub(crate) fn move_endpoint(&mut self) -> Option<()> {
        self.endpoint.as_mut()?.epoch += 1;
        Some(())
    }

    pub(crate) fn begin_resend(&mut self, delivery: usize, skew: Millis) -> Option<()> {
        self.endpoint.filter(|endpoint| endpoint.is_on)?;
        let (seen, token) = (self.deliveries[delivery].progress.clone()?, self.free_token());
        self.command(Command::Resend { delivery, seen, token }, skew);
        Some(())
    }

    pub(crate) fn begin_removal(&mut self, skew: Millis) -> Option<()> {
        self.endpoint?;
        self.command(Command::Remove, skew);
        Some(())
    }

    fn command(&mut self, command: Command, skew: Millis) {
        let step = OperatorStep::CallBefore;
        self.operators.push(Operator { step, command, skew, until: self.now + TIMEOUT });
    }

    /// Makes the next step of a command.
    pub(crate) fn operate(&mut self, index: usize) {
        let operator = self.operators.remove(index);
        let now = self.clock(operator.skew);
        let token = self.free_token();
        let next = match operator.step {
            OperatorStep::CallBefore => {
                self.call_drain_by(token, now, now);
                Some(OperatorStep::Write)
            }
            OperatorStep::Write => self.write_command(&operator.command, now).then_some(OperatorStep::Call),
            OperatorStep::Call => self.call_drain(token, now).then_some(OperatorStep::Send(token)),
            OperatorStep::Send(token) => {
                self.send_call(token);
                None
            }
        };
        if let Some(step) = next {
            self.operators.insert(index, Operator { step, ..operator });
        }
    }

    /// Returns whether the command has changed something.
    fn write_command(&mut self, command: &Command, now: Timestamp) -> bool {
        match command {
            Command::Resend { delivery, seen, token } => self.write(*delivery, &resend(seen, *token, now)).0,
            Command::Remove => {
                let is_there = self.endpoint.take().is_some();
                let token = self.free_token();
                let row = self.drain.get_or_insert(DrainRow::new(token, now));
                (row.has_removed, row.called_at) = (row.has_removed | is_there, now);
                is_there
            }
        }
    }

    pub(crate) fn crash_operator(&mut self, operator: usize) {
        self.operators.remove(operator);
    }

    /// Returns whether nobody is at work or will be.
    fn is_quiet(&self) -> bool {
        let is_empty = self.queue.is_empty() && self.calls.is_empty() && self.workers.is_empty();
        let is_alone = self.runs.is_empty() && self.sweepers.is_empty() && self.operators.is_empty();
        is_empty && is_alone && self.drain.is_none_or(|row| row.wake_at.is_none())
    }

    pub(crate) fn check_rest(&mut self) {
        if self.is_quiet() {
            let is_held = |status| status == Some(Status::Held);
            let is_left = self.deliveries.iter().any(|delivery| is_held(delivery.status()));
            let is_open = self.deliveries.iter().any(|delivery| self.is_open(delivery));
            self.check(self.endpoint.is_some() || !is_left, Broken::LeftBehind);
            self.check(!is_open, Broken::Unsettled);
        }
    }
}
