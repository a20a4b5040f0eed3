//! What things cost: bands of cents, from the common and cheap to the rare and dear. Whole numbers all through.

use super::random::Random;

/// So many of the things of a kind cost `low` to `high` cents.
pub(super) struct Band {
    pub(super) weight: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Band {
    pub(super) const fn new(weight: u64, low: u64, high: u64) -> Self {
        Self { weight, low, high }
    }
}

/// A price in cents from one of the bands, picked by weight.
pub(super) fn price(random: &mut Random, bands: &[Band]) -> u64 {
    let mut roll = random.below(bands.iter().map(|band| band.weight).sum());
    for band in bands {
        if roll < band.weight {
            return random.between(band.low, band.high);
        }
        roll -= band.weight;
    }
    1
}

/// So many percent of a price, a cent at least.
pub(super) const fn scaled(cents: u64, percent: u64) -> u64 {
    let scaled = cents * percent / 100;
    if scaled == 0 { 1 } else { scaled }
}
