//! Asks before what cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::CommandFailure;

/// Whether somebody is there to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// Somebody sits at a terminal.
    Asked,
    /// Nobody does: a script runs it, or `ssh HOST marketctl …`.
    Unattended,
    /// `--yes` was given.
    Given,
}

impl Confirmation {
    pub(crate) fn new(yes: bool) -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        match (yes, is_terminal) {
            (true, _) => Self::Given,
            (false, true) => Self::Asked,
            (false, false) => Self::Unattended,
        }
    }

    /// Asks whether to do something that cannot be undone, and goes on only if the answer is yes. Without a terminal it
    /// goes on.
    pub(crate) fn ask(self, what: &str) -> Result<(), CommandFailure> {
        match self {
            Self::Asked => ask(what, &mut io::stdin().lock(), &mut io::stderr()),
            Self::Unattended | Self::Given => Ok(()),
        }
    }

    /// Does the same for what ends more than the one thing that the command names. Without a terminal it needs `--yes`.
    pub(crate) fn require(self, what: &str) -> Result<(), CommandFailure> {
        if self == Self::Unattended {
            let message = "nothing was done: without a terminal, this needs --yes";
            return Err(CommandFailure::usage(message, format!("{what} This cannot be undone.")));
        }
        self.ask(what)
    }
}

fn ask(what: &str, answers: &mut impl BufRead, shown: &mut impl Write) -> Result<(), CommandFailure> {
    let mut answer = String::new();
    let asked = write!(shown, "{what} This cannot be undone. Go on? [y/N] ").and_then(|()| shown.flush());
    let read = asked.and_then(|()| answers.read_line(&mut answer));
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(CommandFailure::new("nothing was done", "The answer was not y."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_goes_on() {
        let asked = |answer: &str| {
            let mut shown = Vec::new();
            let outcome = ask("Ends key 1.", &mut answer.as_bytes(), &mut shown);
            assert_eq!(str::from_utf8(&shown), Ok("Ends key 1. This cannot be undone. Go on? [y/N] "));
            outcome.is_ok()
        };
        assert_eq!(["y\n", "YES\n", "", "\n", "n\n", "yess\n"].map(asked), [true, true, false, false, false, false]);
        let outcomes = |confirmation: Confirmation| [confirmation.ask("").is_ok(), confirmation.require("").is_ok()];
        assert_eq!([Confirmation::Given, Confirmation::Unattended].map(outcomes), [[true, true], [true, false]]);
    }
}
