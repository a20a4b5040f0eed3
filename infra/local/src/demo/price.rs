//! What things cost: bands of cents, from common and cheap to rare and expensive. All amounts are whole numbers.

use super::random::Random;

/// A range of prices, from `low` to `high` cents. `weight` is its share of the things of a kind.
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

/// Returns a price in cents from one of the bands, which is picked by weight.
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

/// Returns a percentage of a price, at least one cent.
pub(super) const fn scaled(cents: u64, percent: u64) -> u64 {
    let scaled = cents * percent / 100;
    if scaled == 0 { 1 } else { scaled }
}
