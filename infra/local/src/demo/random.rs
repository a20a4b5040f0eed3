//! Numbers and ids that are the same on every machine. `SplitMix64` is written out here because it must give the same
//! numbers for ever, and no crate promises that of its generator.

use common::ids::Id8;
use common::timestamp::Timestamp;
use uuid::Uuid;

/// In milliseconds, as all durations here.
pub(super) const MINUTE_MILLIS: u64 = 60 * 1_000;
pub(super) const HOUR_MILLIS: u64 = 60 * MINUTE_MILLIS;
pub(super) const DAY_MILLIS: u64 = 24 * HOUR_MILLIS;

const NAMESPACE: Uuid = Uuid::from_u128(0xd2a6_1f0b_77c4_4e0e_9b1d_5a0c_3e8f_4411);

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

/// Returns the version 5 UUID of the thing of this kind and name.
pub(super) fn uuid<T: From<Uuid>>(kind: &str, name: &str) -> T {
    Uuid::new_v5(&NAMESPACE, format!("{kind}/{name}").as_bytes()).into()
}

/// Returns the short id of the listing with this number. The odd factor makes this a permutation of all short ids, so
/// no two numbers share one.
pub(super) const fn id8(number: u32) -> Id8 {
    Id8::from_bits(number.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15))
}

/// Turns a name into part of a URL: lower-case letters and digits, with one hyphen for whatever lies between them.
/// Apostrophes and characters outside ASCII are left out.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for symbol in name.chars() {
        if symbol.is_ascii_alphanumeric() {
            slug.push(symbol.to_ascii_lowercase());
        } else if symbol.is_ascii() && symbol != '\'' && !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// Returns a percentage of a price, at least one cent.
pub(super) const fn scaled(cents: u64, percent: u64) -> u64 {
    let scaled = cents * percent / 100;
    if scaled == 0 { 1 } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are the first that Vigna's reference implementation gives with seed 0.
    #[test]
    fn it_is_split_mix_64() {
        let mut random = Random(0);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(first, [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]);
    }
}
