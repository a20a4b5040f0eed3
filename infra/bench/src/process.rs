//! The machine and its processes: CPU time, memory, and who started whom. The kernel's words are those of proc(5).

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// More than the ancestors that any process has. A walk from child to parent ends after as many steps.
const MAX_DEPTH: usize = 1_000;

/// A machine, as far as it matters to a benchmark.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
}

impl Machine {
    /// Returns this machine.
    pub(crate) fn this() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let cpu = model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned());
        Self { cpu, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores", self.cpu, self.cores)
    }
}

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

/// The memory of a process at one time, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) resident: u64,
    /// The most that was ever resident.
    pub(crate) peak: u64,
}

impl Memory {
    /// Returns the memory of this process.
    pub(crate) fn now() -> Self {
        Self::of_process(std::process::id())
    }

    /// Returns the memory of the process with this id (proc(5), `status`), or zeros if the system does not tell.
    pub(crate) fn of_process(id: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        Self { resident: field(&status, "VmRSS:"), peak: field(&status, "VmHWM:") }
    }
}

/// Returns a field's value in bytes. The kernel writes kilobytes.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024
}

/// A process at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    parent: u32,
    /// Its own CPU time, and that of the children that have ended and that it has waited for. Exact to one clock tick,
    /// usually a hundredth of a second.
    pub(crate) cpu: Duration,
}

impl ProcessStat {
    /// Reads the process with this id. Returns `None` if there is none, or if the system does not tell.
    pub(crate) fn read(id: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name stands in brackets and may hold anything. The fields after it are numbered from 3.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks: u64 = (14..=17).filter_map(number).sum();
        let cpu = Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second());
        Some(Self { parent: u32::try_from(number(4)?).ok()?, cpu })
    }
}

/// All processes at one time.
#[derive(Debug)]
pub(crate) struct ProcessTree(HashMap<u32, ProcessStat>);

impl ProcessTree {
    /// Reads the processes that run now.
    pub(crate) fn now() -> Self {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        Self(ids.filter_map(|id| Some((id, ProcessStat::read(id)?))).collect())
    }

    /// Returns whether a process with this id runs.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns the CPU time of these processes and of all that they have started, directly or through others. What
    /// begins at one of `others` does not count. A process counts once, even if it is listed beside its parent.
    pub(crate) fn cpu_below(&self, roots: &[u32], others: &[u32]) -> Duration {
        let counted = self.0.iter().filter(|(id, _)| self.is_below(**id, roots) && !self.is_below(**id, others));
        counted.map(|(_, stat)| stat.cpu).sum()
    }

    fn is_below(&self, id: u32, roots: &[u32]) -> bool {
        let line = std::iter::successors(Some(id), |id| self.0.get(id).map(|stat| stat.parent));
        line.take(MAX_DEPTH).any(|ancestor| roots.contains(&ancestor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(processes: &[(u32, u32, u64)]) -> ProcessTree {
        let stat = |parent, seconds| ProcessStat { parent, cpu: Duration::from_secs(seconds) };
        ProcessTree(processes.iter().map(|&(id, parent, seconds)| (id, stat(parent, seconds))).collect())
    }

    #[test]
    fn the_times_of_a_process_and_of_the_children_that_it_waited_for_are_added() {
        let ticks = rustix::param::clock_ticks_per_second();
        let stat = format!("7 (a ) b) S 3 7 7 0 -1 4194304 9 9 9 9 {ticks} {ticks} {ticks} 0 20 0 1 0 9");
        assert_eq!(ProcessStat::parse(&stat), Some(ProcessStat { parent: 3, cpu: Duration::from_secs(3) }));
        assert_eq!(ProcessStat::parse("7 (a) S"), None);
    }

    #[test]
    fn what_a_process_starts_counts_with_it_and_only_once() {
        let tree = tree(&[(1, 0, 100), (10, 1, 1), (11, 10, 2), (12, 11, 4), (20, 1, 8)]);
        let seconds = |roots: &[u32], others: &[u32]| tree.cpu_below(roots, others).as_secs();
        assert_eq!([seconds(&[10], &[]), seconds(&[10, 12], &[]), seconds(&[11, 20], &[])], [7, 7, 14]);
        assert_eq!([seconds(&[10], &[11]), seconds(&[10], &[10]), seconds(&[], &[])], [1, 0, 0]);
        assert!(tree.has(20) && !tree.has(30));
    }

    #[test]
    fn a_field_is_read_in_bytes() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t    12 kB\nVmRSS:\t     8 kB\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "VmHWM:"), field(status, "VmSwap:")), (8_192, 12_288, 0));
    }
}
