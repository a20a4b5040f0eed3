//! `SplitMix64`, seeded by a record's number.

/// A stream of pseudo-random numbers.
pub(super) struct Random(u64);

impl Random {
    /// Returns the stream of a seed.
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

    /// Returns a number from 0 to `limit - 1`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from 2^`low` to 2^`high` - 1. Every octave is equally likely.
    pub(super) fn in_octaves(&mut self, low: u64, high: u64) -> u64 {
        let octave = 1 << (low + self.below(high - low));
        octave + self.below(octave)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn every_octave_comes_up_and_none_beyond() {
        let mut seen = [false; 8];
        for seed in 0..1_000 {
            seen[Random::from_seed(seed).in_octaves(2, 5).ilog2() as usize] = true;
        }
        assert_eq!(seen, [false, false, true, true, true, false, false, false]);
    }
}
