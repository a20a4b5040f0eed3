//! Shows which step a restore is at, on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::step::Step;

const TICK_INTERVAL: Duration = Duration::from_millis(200);
const TEMPLATE: &str = "{bar:20} step {pos} of {len}: {msg}, {elapsed}";

/// The bar of the step that a restore is at.
pub(super) struct RestoreProgress {
    steps: usize,
    begun: usize,
    bar: ProgressBar,
}

impl RestoreProgress {
    pub(super) fn start(steps: usize) -> Self {
        Self { steps, begun: 0, bar: ProgressBar::hidden() }
    }

    /// Shows the next step. A repair shows a bar of its own.
    pub(super) fn begin(&mut self, step: Step) {
        self.bar.finish_and_clear();
        self.begun += 1;
        if step == Step::Repair {
            return;
        }
        // It draws on standard error, and draws nothing if that is not a terminal.
        self.bar = ProgressBar::new(self.steps as u64);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            self.bar.set_style(style);
        }
        self.bar.set_position(self.begun as u64);
        self.bar.set_message(step.to_string());
        self.bar.enable_steady_tick(TICK_INTERVAL);
    }
}

impl Drop for RestoreProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
