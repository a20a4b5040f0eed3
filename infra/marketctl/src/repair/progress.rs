//! How far long work is, on the terminal.

use terminal::{Bar, count};

use super::mode::Progress;

const BAR_TEMPLATE: &str = "{bar:32} {human_pos} of {human_len} {msg}, {eta} left";
const SPINNER_TEMPLATE: &str = "{spinner} {msg}";

/// Shows how far a repair is, on standard error, if that is a terminal.
pub(crate) struct RepairProgress {
    bar: Bar,
}

impl RepairProgress {
    pub(crate) fn start() -> Self {
        Self { bar: Bar::spinner(SPINNER_TEMPLATE) }
    }

    pub(crate) fn show(&self, progress: Progress) {
        match progress {
            Progress::Comparing(stream) => self.spin(format!("comparing {stream} with its entities")),
            Progress::Writing(stream) => self.spin(format!("writing the base of {stream}")),
            Progress::Scanning { rows, of } => self.show_rows(rows, of, "rows of accounts"),
            Progress::Users { done, of } => self.fill(done, of, "users"),
            Progress::Keys { keys } => self.spin(format!("{} keys", count(keys))),
            Progress::Endpoints { endpoints } => self.spin(format!("{} webhook endpoints", count(endpoints))),
        }
    }

    /// Shows how many rows were read, and about how many there are if that is known.
    pub(crate) fn show_rows(&self, rows: u64, of: Option<u64>, what: &'static str) {
        match of {
            None => self.spin(format!("{} {what}", count(rows))),
            Some(of) => self.fill(rows, of.max(rows), what),
        }
    }

    fn spin(&self, message: String) {
        self.bar.set_template(SPINNER_TEMPLATE);
        self.bar.set_message(message);
    }

    fn fill(&self, done: u64, of: u64, what: &'static str) {
        self.bar.set_template(BAR_TEMPLATE);
        self.bar.show(done, of);
        self.bar.set_message(what);
    }
}
