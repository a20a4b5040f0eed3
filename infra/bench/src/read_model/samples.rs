//! Taking samples: enough for a 99th percentile, more where they are quick.

use std::time::{Duration, Instant};

use crate::cpu;
use crate::percentiles::Percentiles;

/// A 99th percentile of fewer would be the largest.
const AT_LEAST: usize = 100;
const AT_MOST: usize = 1_000;
/// Beyond the least number, samples are taken for so long.
const TIME: Duration = Duration::from_millis(100);

/// Durations of the same thing done again and again.
pub(super) struct Samples {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    began: Instant,
}

/// A sample being taken.
pub(super) struct Sample {
    cpu: Duration,
    wall: Instant,
}

impl Samples {
    pub(super) fn new() -> Self {
        Self { cpu: Vec::with_capacity(AT_MOST), wall: Vec::with_capacity(AT_MOST), began: Instant::now() }
    }

    /// Begins a sample, unless there are enough.
    pub(super) fn next(&self) -> Option<Sample> {
        let wanted = self.cpu.len() < AT_LEAST || (self.cpu.len() < AT_MOST && self.began.elapsed() < TIME);
        wanted.then(|| Sample { cpu: cpu::of_thread(), wall: Instant::now() })
    }

    pub(super) fn end(&mut self, sample: &Sample) {
        self.cpu.push(cpu::of_thread().saturating_sub(sample.cpu));
        self.wall.push(sample.wall.elapsed());
    }

    /// CPU time of the thread.
    pub(super) fn cpu(&self) -> Percentiles {
        Percentiles::of(self.cpu.clone())
    }

    /// Time on the wall.
    pub(super) fn wall(&self) -> Percentiles {
        Percentiles::of(self.wall.clone())
    }
}
