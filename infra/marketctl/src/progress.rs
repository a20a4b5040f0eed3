//! How far long work is, on the terminal.

use terminal::{Bar, count};

const BAR_TEMPLATE: &str = "{bar:12} {human_pos} of {human_len} {msg}{left}";
const SPINNER_TEMPLATE: &str = "{spinner} {msg}";

/// Shows how far a command is, on standard error, if that is a terminal.
pub(crate) struct Progress {
    bar: Bar,
}

impl Progress {
    pub(crate) fn start() -> Self {
        Self { bar: Bar::spinner(SPINNER_TEMPLATE) }
    }

    /// Shows how many rows were read, and about how many there are if that is known.
    pub(crate) fn show_rows(&self, rows: u64, of: Option<u64>, what: &'static str) {
        match of {
            None => self.say(format!("{what}: {}", count(rows))),
            Some(of) => {
                self.bar.set_message(what);
                self.bar.set_template(BAR_TEMPLATE);
                self.bar.show(rows, of.max(rows));
            }
        }
    }

    /// Shows what is done now.
    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
        self.bar.set_template(SPINNER_TEMPLATE);
    }
}
