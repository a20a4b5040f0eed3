//! What is searched for, ready to be compared with many positions of a text at once.

use std::array::from_fn;

/// A needle's tail is its last bytes: so many, or all.
pub(super) const TAIL: usize = 8;
/// So many bytes of the tail, the rarest, are compared at every position of a text.
const PROBES: usize = 3;
/// So many bytes, the last, are compared where these agree. A text begins with as many that no needle has.
pub(super) const LAST: usize = 2 * TAIL;
/// So many bytes of a text show which are rare in it.
const SAMPLE: usize = 64;

/// A lower-cased, non-empty text to look for.
pub(super) struct Needle<'a> {
    /// What stands before the tail.
    pub(super) head: &'a [u8],
    pub(super) tail: &'a [u8],
    /// Bytes of the tail, and where in it they stand.
    probes: [(usize, u8); PROBES],
    /// The last bytes as a number, the very last one highest, and which of its bits are the needle's.
    last: u128,
    mask: u128,
}

impl<'a> Needle<'a> {
    /// Learns from the middle of some texts which bytes are rare in them.
    pub(super) fn new<'t>(needle: &'a str, texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut counts = [0_u32; 256];
        for byte in texts.flat_map(|text| text.iter().skip(text.len() / 2).take(SAMPLE)) {
            counts[usize::from(*byte)] += 1;
        }
        let (head, tail) = needle.as_bytes().split_at(needle.len().saturating_sub(TAIL));
        let mut rarest: Vec<(usize, u8)> = tail.iter().copied().enumerate().collect();
        rarest.sort_by_key(|(_, byte)| counts[usize::from(*byte)]);
        let probes = from_fn(|n| rarest[n.min(rarest.len() - 1)]);
        let known = &needle.as_bytes()[needle.len().saturating_sub(LAST)..];
        let last = known.iter().rev().fold(0, |last, byte| last << 8 | u128::from(*byte));
        let above = 8 * (LAST - known.len());
        Self { head, tail, probes, last: last << above, mask: u128::MAX << above }
    }

    /// Notes a bit for each position of a text, set where the tail may begin, and 64 bits more; false if
    /// none is set. The text is a multiple of 64 bytes and [`TAIL`] more.
    pub(super) fn probe(&self, text: &[u8], tails: &mut Vec<u64>) -> bool {
        let [a, b, c] = self.probes.map(|(at, byte)| (text[at..].as_chunks::<64>().0, byte));
        tails.clear();
        tails.extend(a.0.iter().zip(b.0).zip(c.0).map(move |((one, two), three)| {
            pack(&from_fn(|at| u8::from(one[at] == a.1) & u8::from(two[at] == b.1) & u8::from(three[at] == c.1)))
        }));
        tails.push(0);
        tails.iter().fold(0, |any, word| any | word) != 0
    }

    /// Whether the needle is what a text ends in, when only so many bytes before the tail may be looked at;
    /// none if that takes more.
    #[inline]
    pub(super) fn ends(&self, text: &[u8], before: usize) -> Option<bool> {
        let differing = (u128::from_le_bytes(*text.last_chunk()?) ^ self.last) & self.mask;
        let is_within = self.head.len().min(LAST - TAIL) <= before;
        if differing >> (if is_within { 0 } else { 8 * (LAST - TAIL) }) != 0 {
            return Some(false);
        }
        (is_within && self.head.len() <= LAST - TAIL).then_some(true)
    }
}

/// Sixty-four bytes of 0 or 1 as the bits of one number.
fn pack(flags: &[u8; 64]) -> u64 {
    let eights = flags.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |word, (n, eight)| {
        // Moves the lowest bit of each byte into the highest byte, side by side.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word | bits << (8 * n)
    })
}
