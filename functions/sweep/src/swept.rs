//! What a run did.

use platform::metrics::{Meter, Metric};
use runtime::Error;

/// Counts what a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Parked retries that were put into the queue.
    pub(crate) parked: u64,
    /// Messages that were taken for lost and sent again.
    pub(crate) overdue: u64,
    /// Messages that are overdue, but were not sent again because a queue is behind.
    pub(crate) waiting: u64,
    /// Notices sent.
    pub(crate) notices: u64,
    /// Shards of the index that the run did not finish. The next run does the rest.
    pub(crate) unfinished: u64,
    /// Rows that cannot be read and were set aside.
    pub(crate) unreadable: u64,
    /// Steps that failed. The next run repeats them.
    pub(crate) failed: u64,
    /// The first error.
    pub(crate) because: Option<String>,
}

impl Swept {
    /// Writes the run's log line. Returns an error if a step failed.
    pub(crate) fn report(&self, meter: &Meter) -> Result<(), Error> {
        let Self { parked, overdue, waiting, notices, unfinished, unreadable, failed, because } = self;
        let mut line = meter.line("swept");
        line.count(Metric::Parked, *parked);
        line.count(Metric::Overdue, *overdue);
        line.count(Metric::Waiting, *waiting);
        line.count(Metric::Notices, *notices);
        line.count(Metric::Unfinished, *unfinished);
        line.count(Metric::Unreadable, *unreadable);
        line.member("failed", failed);
        line.known("because", because.as_deref());
        line.log(*failed > 0);
        match because {
            None => Ok(()),
            Some(because) => Err(format!("{failed} steps failed; the first error: {because}").into()),
        }
    }

    pub(crate) fn failure(error: &str) -> Self {
        Self { failed: 1, because: Some(error.to_owned()), ..Self::default() }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            parked: self.parked + other.parked,
            overdue: self.overdue + other.overdue,
            waiting: self.waiting + other.waiting,
            notices: self.notices + other.notices,
            unfinished: self.unfinished + other.unfinished,
            unreadable: self.unreadable + other.unreadable,
            failed: self.failed + other.failed,
            because: self.because.or(other.because),
        }
    }
}
