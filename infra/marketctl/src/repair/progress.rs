//! Shows how far a repair is, on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use repair::Progress;

const TICK_INTERVAL: Duration = Duration::from_millis(200);
const BAR_TEMPLATE: &str = "{bar:32} {human_pos} of {human_len} {msg}, {eta} left";
const SPINNER_TEMPLATE: &str = "{spinner} {msg}";

pub(crate) struct RepairProgress {
    bar: ProgressBar,
}

impl RepairProgress {
    pub(crate) fn start() -> Self {
        // It draws on standard error, and draws nothing if that is not a terminal.
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(TICK_INTERVAL);
        Self { bar }
    }

    pub(crate) fn show(&self, progress: Progress) {
        match progress {
            Progress::Comparing(stream) => self.spin(format!("comparing {stream} with its entities")),
            Progress::Writing(stream) => self.spin(format!("writing the base of {stream}")),
            Progress::Scanning { rows, of } => self.show_rows(rows, of, "rows of accounts"),
            Progress::Users { done, of } => self.fill(done, of, "users"),
            Progress::Keys { keys } => self.spin(format!("{} keys", HumanCount(keys))),
            Progress::Endpoints { endpoints } => self.spin(format!("{} webhook endpoints", HumanCount(endpoints))),
        }
    }

    /// Shows how many rows were read, and about how many there are if that is known.
    pub(crate) fn show_rows(&self, rows: u64, of: Option<u64>, what: &'static str) {
        match of {
            None => self.spin(format!("{} {what}", HumanCount(rows))),
            Some(of) => self.fill(rows, of.max(rows), what),
        }
    }

    fn spin(&self, message: String) {
        self.style(SPINNER_TEMPLATE);
        self.bar.set_message(message);
    }

    fn fill(&self, done: u64, of: u64, what: &'static str) {
        self.style(BAR_TEMPLATE);
        self.bar.set_length(of);
        self.bar.set_position(done);
        self.bar.set_message(what);
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
    }
}

impl Drop for RepairProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
