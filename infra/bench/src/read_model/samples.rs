//! Takes samples: enough for a 99th percentile, and more if they are quick.

use std::time::{Duration, Instant};

use crate::cpu;
use crate::percentiles::Percentiles;

/// The fewest samples. With fewer, the 99th percentile would be the largest sample.
const MIN_SAMPLES: usize = 100;
const MAX_SAMPLES: usize = 1_000;
/// Once there are [`MIN_SAMPLES`] samples, more are taken only until this time has passed since the beginning.
const SAMPLING_TIME: Duration = Duration::from_millis(100);

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
        Self { cpu: Vec::with_capacity(MAX_SAMPLES), wall: Vec::with_capacity(MAX_SAMPLES), began: Instant::now() }
    }

    /// Begins a sample, unless there are enough.
    pub(super) fn next(&self) -> Option<Sample> {
        let is_needed =
            self.cpu.len() < MIN_SAMPLES || (self.cpu.len() < MAX_SAMPLES && self.began.elapsed() < SAMPLING_TIME);
        is_needed.then(|| Sample { cpu: cpu::thread_time(), wall: Instant::now() })
    }

    pub(super) fn end(&mut self, sample: &Sample) {
        self.cpu.push(cpu::thread_time().saturating_sub(sample.cpu));
        self.wall.push(sample.wall.elapsed());
    }

    /// Returns percentiles of the thread's CPU time.
    pub(super) fn cpu(&self) -> Percentiles {
        Percentiles::from_samples(self.cpu.clone())
    }

    /// Returns percentiles of wall-clock time.
    pub(super) fn wall(&self) -> Percentiles {
        Percentiles::from_samples(self.wall.clone())
    }
}
