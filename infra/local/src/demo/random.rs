//! `SplitMix64`, written out here because it must give the same numbers for ever, and no crate promises that of its
//! generator.

use types::timestamp::Timestamp;

/// In milliseconds, as all durations here.
pub(super) const MINUTE_MILLIS: u64 = 60 * 1_000;
pub(super) const HOUR_MILLIS: u64 = 60 * MINUTE_MILLIS;
pub(super) const DAY_MILLIS: u64 = 24 * HOUR_MILLIS;

/// A stream of pseudo-random numbers.
pub(super) struct Random(u64);

impl Random {
    /// Returns the stream of one part of the market. Each part has its own, so that a change to one does not change
    /// the others.
    pub(super) const fn from_part(part: u64) -> Self {
        Self(0x5EED_0F5C_1245_0000 ^ part)
    }

    /// Returns the stream of a record, which is seeded by its number.
    pub(super) const fn from_seed(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    /// Returns any number.
    pub(super) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number from 0 to `limit - 1`, or 0 if `limit` is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Returns a number from 2^`low` to 2^`high` - 1. Every octave is equally likely.
    pub(super) fn in_octaves(&mut self, low: u64, high: u64) -> u64 {
        let octave = 1 << (low + self.below(high - low));
        octave + self.below(octave)
    }

    /// Returns true in `chance` of a hundred cases.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Returns one of the choices, all equally likely, or `None` if there are none.
    pub(super) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len() as u64) as usize)
    }

    /// Returns one of the choices, earlier ones more often, or `None` if there are none.
    pub(super) fn pick_early<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let limit = choices.len() as u64;
        choices.get(self.below(limit).min(self.below(limit)) as usize)
    }

    /// Returns a time within the last `millis` milliseconds before `now`.
    pub(super) fn before(&mut self, now: Timestamp, millis: u64) -> Timestamp {
        now.plus_millis(-self.below(millis).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The expected numbers are the first that Vigna's reference implementation gives with seed 0.
    #[test]
    fn it_is_split_mix_64() {
        let mut random = Random(0);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(first, [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]);
    }

    #[test]
    fn every_octave_comes_up_and_none_beyond() {
        let mut seen = [false; 8];
        for seed in 0..1_000 {
            seen[Random::from_seed(seed).in_octaves(2, 5).ilog2() as usize] = true;
        }
        assert_eq!(seen, [false, false, true, true, true, false, false, false]);
    }

    #[test]
    fn bounds_hold_and_are_reached() {
        let mut random = Random::from_part(0);
        let mut seen = [false; 5];
        for _ in 0..1_000 {
            seen[random.between(3, 7) as usize - 3] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!((random.below(0), random.pick::<u8>(&[]), random.pick_early::<u8>(&[])), (0, None, None));
    }
}
