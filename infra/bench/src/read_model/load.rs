//! Measures what it takes to read a whole stream.

use serde::{Deserialize, Serialize};

use crate::cpu::Started;
use crate::memory::Memory;
use crate::meter::{Bill, Meter};

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
pub(super) struct Loading {
    meter: Meter,
    memory: Memory,
    started: Started,
}

impl Loading {
    /// Starts measuring. The meter counts the calls.
    pub(super) fn begin(meter: &Meter) -> Self {
        Self { meter: meter.clone(), memory: Memory::now(), started: Started::now() }
    }

    pub(super) fn end(self) -> Load {
        let (spent, memory) = (self.started.spent(), Memory::now());
        Load {
            cpu_ms: spent.cpu.as_secs_f64() * 1e3,
            wall_ms: spent.wall.as_secs_f64() * 1e3,
            bill: self.meter.take(),
            resident_bytes: memory.resident.saturating_sub(self.memory.resident),
            peak_bytes: memory.peak,
        }
    }
}
