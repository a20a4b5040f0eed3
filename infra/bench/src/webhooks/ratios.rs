//! Ratios of runs that took turns.

use std::fmt;

use serde::Serialize;

/// The median of several ratios, and how far they are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Ratios {
    pub(super) median: f64,
    pub(super) smallest: f64,
    pub(super) largest: f64,
}

impl Ratios {
    /// Takes the ratios in any order. Without any, the result is not a number.
    pub(super) fn new(ratios: impl IntoIterator<Item = f64>) -> Self {
        let mut ratios: Vec<f64> = ratios.into_iter().collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| ratios.get(index).copied().unwrap_or(f64::NAN);
        let last = ratios.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(ratios.len() / 2)), smallest: at(0), largest: at(last) }
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} (from {:.2} to {:.2})", self.median, self.smallest, self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_halfway_between_the_two_in_the_middle() {
        assert_eq!(Ratios::new([2.0, 0.5, 1.0]), Ratios { median: 1.0, smallest: 0.5, largest: 2.0 });
        assert_eq!(Ratios::new([4.0, 1.0, 2.0, 1.0]), Ratios { median: 1.5, smallest: 1.0, largest: 4.0 });
        assert!(Ratios::new([]).median.is_nan());
    }
}
