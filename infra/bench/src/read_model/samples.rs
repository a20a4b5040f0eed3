//! Takes samples: enough for a 99th percentile, and more if they are quick.

use std::time::{Duration, Instant};

use crate::cpu;
use crate::percentiles::Percentiles;

/// The fewest samples. With fewer, the 99th percentile would be the largest sample.
const AT_LEAST: usize = 100;
const AT_MOST: usize = 1_000;
/// Once there are [`AT_LEAST`] samples, more are taken only until this time has passed since the beginning.
const TIME: Duration = Duration::from_millis(100);

/// How long the same work took each time.
pub(super) struct Samples {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    began: Instant,
}

/// A sample that is being taken.
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

    /// Returns percentiles of the thread's CPU time.
    pub(super) fn cpu(&self) -> Percentiles {
        Percentiles::of(self.cpu.clone())
    }

    /// Returns percentiles of wall-clock time.
    pub(super) fn wall(&self) -> Percentiles {
        Percentiles::of(self.wall.clone())
    }
}
