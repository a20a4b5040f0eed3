//! Shows which step a restore is at, on standard error, if that is a terminal.

use terminal::Bar;

use super::step::Step;

const TEMPLATE: &str = "{bar:20} step {pos} of {len}: {msg}, {elapsed}";

/// The bar of the step that a restore is at.
pub(super) struct RestoreProgress {
    steps: usize,
    begun: usize,
    bar: Option<Bar>,
}

impl RestoreProgress {
    pub(super) fn start(steps: usize) -> Self {
        Self { steps, begun: 0, bar: None }
    }

    /// Shows the next step. A repair shows a bar of its own.
    pub(super) fn begin(&mut self, step: Step) {
        self.begun += 1;
        // The bar of the step before goes away first.
        self.bar = None;
        if step != Step::Repair {
            let bar = Bar::new(TEMPLATE, self.steps as u64);
            bar.advance(self.begun as u64);
            bar.set_message(step.to_string());
            self.bar = Some(bar);
        }
    }
}
