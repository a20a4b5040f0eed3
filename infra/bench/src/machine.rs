//! Names the machine that the numbers come from.

use std::fmt;

use serde::Serialize;

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
