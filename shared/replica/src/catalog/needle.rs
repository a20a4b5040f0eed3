//! The text to search for, ready to be compared with many positions of another text at once.

use std::array::from_fn;

use super::grams::NeedleGrams;

/// The length of a needle's tail, which is its last bytes. A shorter needle is all tail.
pub(super) const TAIL_BYTES: usize = 8;
/// How many bytes of the tail, the rarest ones, are compared at every position of a text.
const PROBES: usize = 3;
/// How many bytes at the needle's end are compared where the probes agree. A text begins with this many bytes that no
/// needle contains.
pub(super) const ENDING_BYTES: usize = 2 * TAIL_BYTES;
/// How many bytes of a text are sampled to learn which are rare.
const SAMPLE_BYTES: usize = 64;

/// A case-folded, non-empty text to look for, without control characters.
pub(super) struct Needle<'a> {
    /// The bytes before the tail.
    pub(super) head: &'a [u8],
    pub(super) tail: &'a [u8],
    /// The rarest bytes of the tail, each with its position in the tail.
    probes: [(usize, u8); PROBES],
    /// The needle's last bytes as a number, with the very last byte highest.
    last: u128,
    /// Which bits of `last` belong to the needle.
    mask: u128,
    pub(super) grams: NeedleGrams,
}

impl<'a> Needle<'a> {
    /// Prepares a needle. Samples from the middle of some texts show which bytes are rare.
    pub(super) fn new<'t>(needle: &'a str, texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut counts = [0_u32; 256];
        for byte in texts.flat_map(|text| text.iter().skip(text.len() / 2).take(SAMPLE_BYTES)) {
            counts[usize::from(*byte)] += 1;
        }
        let (head, tail) = needle.as_bytes().split_at(needle.len().saturating_sub(TAIL_BYTES));
        let mut rarest: Vec<(usize, u8)> = tail.iter().copied().enumerate().collect();
        rarest.sort_by_key(|(_, byte)| counts[usize::from(*byte)]);
        let probes = from_fn(|n| rarest[n.min(rarest.len() - 1)]);
        let known = &needle.as_bytes()[needle.len().saturating_sub(ENDING_BYTES)..];
        let last = known.iter().rev().fold(0, |last, byte| last << 8 | u128::from(*byte));
        let above = 8 * (ENDING_BYTES - known.len());
        let grams = NeedleGrams::new(needle.as_bytes());
        Self { head, tail, probes, last: last << above, mask: u128::MAX << above, grams }
    }

    /// Notes in `tails` a bit for each position of a text, which is set if the tail may begin there, and then 64 unset
    /// bits. Returns whether any bit is set. The length of the text must be a multiple of 64 bytes plus [`TAIL_BYTES`].
    pub(super) fn probe(&self, text: &[u8], tails: &mut Vec<u64>) -> bool {
        let [a, b, c] = self.probes.map(|(at, byte)| (text[at..].as_chunks::<64>().0, byte));
        tails.clear();
        tails.extend(a.0.iter().zip(b.0).zip(c.0).map(move |((one, two), three)| {
            pack(&from_fn(|at| u8::from(one[at] == a.1) & u8::from(two[at] == b.1) & u8::from(three[at] == c.1)))
        }));
        tails.push(0);
        tails.iter().fold(0, |any, word| any | word) != 0
    }

    /// Returns whether a text ends with the needle. Looks at no more than `before` bytes before the tail, and returns
    /// `None` if they are not enough to tell.
    #[inline]
    pub(super) fn ends(&self, text: &[u8], before: usize) -> Option<bool> {
        let differing = (u128::from_le_bytes(*text.last_chunk()?) ^ self.last) & self.mask;
        let is_within = self.head.len().min(ENDING_BYTES - TAIL_BYTES) <= before;
        if differing >> (if is_within { 0 } else { 8 * (ENDING_BYTES - TAIL_BYTES) }) != 0 {
            return Some(false);
        }
        (is_within && self.head.len() <= ENDING_BYTES - TAIL_BYTES).then_some(true)
    }
}

/// Packs 64 bytes of 0 or 1 into the bits of one number.
fn pack(flags: &[u8; 64]) -> u64 {
    let eights = flags.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |word, (n, eight)| {
        // Moves the lowest bit of each byte into the highest byte, side by side.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word | bits << (8 * n)
    })
}
