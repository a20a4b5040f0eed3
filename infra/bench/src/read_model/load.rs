//! Measures what it takes to read a whole stream.

use local::meter::{Bill, CostMeter};
use serde::{Deserialize, Serialize};

use crate::cpu::Stopwatch;
use crate::memory::Memory;

/// What a load took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    /// CPU time of the process, all threads together.
    pub(crate) cpu_ms: f64,
    pub(crate) wall_ms: f64,
    pub(crate) bill: Bill,
    /// How much the process's resident memory has grown.
    pub(crate) resident_bytes: u64,
    /// The most memory that the process ever had resident, the program itself included.
    pub(crate) peak_bytes: u64,
}

/// A load in progress.
pub(super) struct LoadMeasurement {
    meter: CostMeter,
    memory: Memory,
    stopwatch: Stopwatch,
}

impl LoadMeasurement {
    /// Starts measuring. The meter counts the calls.
    pub(super) fn start(meter: &CostMeter) -> Self {
        Self { meter: meter.clone(), memory: Memory::now(), stopwatch: Stopwatch::start() }
    }

    pub(super) fn finish(self) -> Load {
        let (spent, memory) = (self.stopwatch.spent(), Memory::now());
        Load {
            cpu_ms: spent.cpu.as_secs_f64() * 1e3,
            wall_ms: spent.wall.as_secs_f64() * 1e3,
            bill: self.meter.take(),
            resident_bytes: memory.resident.saturating_sub(self.memory.resident),
            peak_bytes: memory.peak,
        }
    }
}
