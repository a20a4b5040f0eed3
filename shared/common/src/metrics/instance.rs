//! What an instance tells about itself in its lines: how long its init phase took, and how much memory it has used.
//! Lambda tells both in lines of its own for each request, which are off because of their cost.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A line tells the memory again once it has grown by this many megabytes.
const STEP_MB: u64 = 16;

/// What is still to be told. Nothing is told before the init phase is over, and outside of Lambda it never is.
#[derive(Debug, Default)]
pub(super) struct Instance(Mutex<Option<Told>>);

#[derive(Debug)]
struct Told {
    /// How long the init phase took, until that is told.
    init: Option<Duration>,
    /// The peak that was told last.
    peak_mb: Option<u64>,
}

impl Instance {
    /// Notes that the init phase is over, after this time.
    pub(super) fn started(&self, init: Duration) {
        let told = Told { init: Some(init), peak_mb: None };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Returns the milliseconds of the init phase, and the peak in megabytes. Each is there only if the next line is to
    /// tell it.
    pub(super) fn news(&self, peak_mb: impl FnOnce() -> Option<u64>) -> (Option<u64>, Option<u64>) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = told.as_mut() else { return (None, None) };
        let is_news = |peak: &u64| told.peak_mb.is_none_or(|last| *peak >= last + STEP_MB);
        let peak = peak_mb().filter(is_news);
        told.peak_mb = peak.or(told.peak_mb);
        (told.init.take().and_then(|init| u64::try_from(init.as_millis()).ok()), peak)
    }
}

/// Returns the most memory that this process has used so far, in megabytes. Lambda's own figure also has what belongs to
/// the sandbox.
pub(super) fn peak_mb() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_of(status: &str) -> Option<u64> {
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes.div_ceil(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_init_phase_is_told_once_and_the_memory_whenever_it_has_grown() {
        let instance = Instance::default();
        assert_eq!(instance.news(|| Some(20)), (None, None), "there was no init phase");
        instance.started(Duration::from_micros(81_900));
        let told = [20, 35, 36, 36, 51, 90].map(|peak| instance.news(|| Some(peak)));
        assert_eq!(
            told,
            [(Some(81), Some(20)), (None, None), (None, Some(36)), (None, None), (None, None), (None, Some(90))]
        );
        assert_eq!(instance.news(|| None), (None, None));
    }

    #[test]
    fn the_peak_is_read_in_megabytes() {
        assert_eq!(peak_of("VmPeak:\t  9999 kB\nVmHWM:\t    20481 kB\nVmRSS:\t     8 kB\n"), Some(21));
        assert_eq!(peak_of("VmRSS:\t     8 kB\n"), None);
    }
}
