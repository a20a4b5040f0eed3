//! Shows which step a restore is at, on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::step::Step;

const TICK_INTERVAL: Duration = Duration::from_millis(200);
const TEMPLATE: &str = "{bar:20} step {pos} of {len}: {msg}, {elapsed}";

pub(super) struct RestoreProgress {
    bar: ProgressBar,
}

impl RestoreProgress {
    pub(super) fn start(steps: usize) -> Self {
        // It draws on standard error, and draws nothing if that is not a terminal.
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Shows the next step. The repair shows a progress of its own.
    pub(super) fn next(&self, step: Step) {
        self.bar.inc(1);
        self.bar.set_message(step.to_string());
        if step == Step::Repair {
            self.bar.disable_steady_tick();
        } else {
            self.bar.reset_elapsed();
            self.bar.enable_steady_tick(TICK_INTERVAL);
        }
    }
}

impl Drop for RestoreProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
