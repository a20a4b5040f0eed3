//! CPU clocks: how long a thread or a process has computed, whatever else the machine was doing.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::process_tree::ProcessStat;

/// Returns the CPU time of the calling thread so far.
pub(crate) fn thread_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Returns the CPU time of all threads of this process so far.
pub(crate) fn process_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of all threads of a child so far, and of what it has started and waited for. Returns zero if
/// the child has ended, or if the system does not tell.
pub(crate) fn child_time(child: &tokio::process::Child) -> Duration {
    child.id().and_then(ProcessStat::read).map_or(Duration::ZERO, |stat| stat.cpu)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// How much wall-clock time has passed, and how much CPU time the process has used meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSpent {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// A point in time on both clocks.
pub(crate) struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: process_time(), wall: Instant::now() }
    }

    pub(crate) fn spent(&self) -> TimeSpent {
        TimeSpent { cpu: process_time().saturating_sub(self.cpu), wall: self.wall.elapsed() }
    }
}
