//! Shows the progress of the work on standard error, if that is a terminal.

use std::sync::Arc;
use std::time::Duration;

use terminal::{Bar, count};
use types::clock::Clock;

const BAR_TEMPLATE: &str = "{bar:32} {bytes} of {total_bytes}, {msg}, {eta} left";
const SPINNER_TEMPLATE: &str = "{spinner} {bytes}, {msg}";

/// A bar if the size of the input is known, otherwise a spinner.
pub(crate) struct ProgressDisplay {
    bar: Bar,
    clock: Arc<dyn Clock>,
    started: Duration,
    lines: u64,
}

impl ProgressDisplay {
    pub(crate) fn start(bytes: Option<u64>, clock: Arc<dyn Clock>) -> Self {
        let bar = bytes.map_or_else(|| Bar::spinner(SPINNER_TEMPLATE), |bytes| Bar::new(BAR_TEMPLATE, bytes));
        let progress = Self { bar, started: clock.monotonic(), clock, lines: 0 };
        progress.show_rate();
        progress
    }

    /// Adds lines and bytes that are now done.
    pub(crate) fn advance(&mut self, lines: u64, bytes: u64) {
        self.lines += lines;
        self.bar.advance(bytes);
        self.show_rate();
    }

    fn show_rate(&self) {
        let elapsed = self.clock.monotonic().saturating_sub(self.started);
        let rate = per_second(self.lines, elapsed);
        self.bar.set_message(format!("{} lines, {} lines/s", count(self.lines), count(rate)));
    }
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    let millis = elapsed.as_millis().max(1);
    u64::try_from(u128::from(count) * 1_000 / millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_second_and_needs_no_time_to_have_passed() {
        assert_eq!(per_second(4_000, Duration::from_millis(500)), 8_000);
        assert_eq!(per_second(0, Duration::ZERO), 0);
        assert_eq!(per_second(1, Duration::from_secs(3)), 0);
    }
}
