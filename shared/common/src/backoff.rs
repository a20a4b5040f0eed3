//! Random pauses before another try, so that callers that failed together do not come back together.

use std::time::Duration;

/// A writer that has lost this many races for a row returns a conflict, and the write may be tried again later.
pub const MAX_RACES: u32 = 50;

/// The pauses of [`pause`] are below this before the first repetition.
const FIRST_CEILING: Duration = Duration::from_millis(5);
/// How often that ceiling doubles.
const MAX_DOUBLINGS: u32 = 9;

/// Returns the pause after a lost race or a conflict: below 5 ms for attempt 0, then below 10 ms, 20 ms, … and at most
/// 2.56 s.
pub fn pause(attempt: u32) -> Duration {
    full_jitter(FIRST_CEILING * (1_u32 << attempt.min(MAX_DOUBLINGS)))
}

/// Returns a random pause below a ceiling of at most an hour.
pub fn full_jitter(ceiling: Duration) -> Duration {
    let micros = u32::try_from(ceiling.as_micros()).unwrap_or(u32::MAX);
    Duration::from_micros(fastrand::u32(0..micros.max(1)).into())
}

/// Returns a random pause: at least half of `longest`, which is at most an hour, and at most all of it.
pub fn equal_jitter(longest: Duration) -> Duration {
    longest / 2 + full_jitter(longest / 2)
}

/// Returns a random number of seconds: at least half of `longest` and at most all of it.
pub fn equal_jitter_seconds(longest: u32) -> u32 {
    longest - fastrand::u32(0..=longest / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 1_000;

    #[test]
    fn a_pause_is_below_a_ceiling_that_doubles_up_to_a_limit() {
        for (attempt, ceiling_millis) in [(0, 5), (1, 10), (8, 1_280), (9, 2_560), (10, 2_560), (u32::MAX, 2_560)] {
            let ceiling = Duration::from_millis(ceiling_millis);
            let longest = (0..DRAWS).map(|_| pause(attempt)).max().unwrap();
            assert!((ceiling / 2..ceiling).contains(&longest), "{longest:?} after {attempt}");
        }
        assert_eq!(full_jitter(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn an_equally_jittered_pause_is_at_least_half_of_the_longest() {
        let longest = Duration::from_millis(320);
        let drawn: Vec<Duration> = (0..DRAWS).map(|_| equal_jitter(longest)).collect();
        assert!(drawn.iter().all(|pause| (longest / 2..=longest).contains(pause)), "{drawn:?}");
        assert!(drawn.iter().any(|pause| *pause != drawn[0]));
        assert_eq!(equal_jitter(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn equal_jitter_takes_every_value_from_half_of_the_delay_to_all_of_it() {
        for (longest, expected) in [(0, 0..=0), (1, 1..=1), (2, 1..=2), (5, 3..=5), (30, 15..=30)] {
            let mut drawn: Vec<u32> = (0..DRAWS).map(|_| equal_jitter_seconds(longest)).collect();
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn, expected.collect::<Vec<_>>());
        }
        assert!((u32::MAX / 2..=u32::MAX).contains(&equal_jitter_seconds(u32::MAX)));
    }
}
