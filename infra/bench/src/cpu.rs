//! CPU clocks: how long a thread or a process has computed, whatever else the machine was doing.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of the calling thread so far.
pub(crate) fn thread_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Returns the CPU time of all threads of this process so far.
pub(crate) fn process_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of all threads of a child so far, exact to one clock tick, usually a hundredth of a second.
/// Returns zero if the child has ended, or if the system does not tell (proc(5), `stat`).
pub(crate) fn child_time(child: &tokio::process::Child) -> Duration {
    let stat = child.id().and_then(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok()).unwrap_or_default();
    // The name stands in brackets and may hold anything. User and system time are fields 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
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
