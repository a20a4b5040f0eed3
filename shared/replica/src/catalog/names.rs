//! A block's names, [folded](super::folding) and ready to be searched. Also the *needle*: the text to search for, ready
//! to be compared with many positions of the names at once.

use std::array::from_fn;
use std::ops::Range;

use super::folding::push_folded;
use super::grams::{GramCounter, Grams, NeedleGrams};

/// Ends each name. Names contain no control characters, and a needle that contains one is never searched for.
const END: u8 = b'\n';
/// How many bytes of a name's shared beginning are kept. Together with the first byte of the rest they make a tail.
const CONTEXT_BYTES: usize = TAIL_BYTES - 1;
/// The length of a needle's tail, which is its last bytes. A shorter needle is all tail.
const TAIL_BYTES: usize = 8;
/// How many bytes of the tail, the rarest ones, are compared at every position of a text.
const PROBES: usize = 3;
/// How many bytes at the needle's end are compared where the probes agree. A text begins with this many bytes that no
/// needle contains.
const ENDING_BYTES: usize = 2 * TAIL_BYTES;
/// How many bytes of a text are sampled to learn which are rare.
const SAMPLE_BYTES: usize = 64;

/// Folded names, in the block's order, in one text. A missing name is empty.
#[derive(Default)]
pub(super) struct Names {
    /// A part for each name: its context, what it does not share with the name before, and [`END`]. Before the first
    /// part stands [`END`], [`ENDING_BYTES`] times. After the last part, the text is filled up with [`END`] to a
    /// multiple of 64 bytes, and then by [`TAIL_BYTES`] more.
    text: Vec<u8>,
    /// Where each part begins, and where the last one ends.
    starts: Vec<u32>,
    /// How many bytes at its beginning each name shares with the name before.
    shared: Vec<u16>,
    grams: Grams,
    /// Counts how often the text was searched.
    #[cfg(test)]
    searches: std::sync::atomic::AtomicUsize,
}

impl Names {
    /// Replaces the names with these.
    pub(super) fn index<'a>(&mut self, names: impl ExactSizeIterator<Item = &'a str>, counter: &mut GramCounter) {
        self.text = vec![END; ENDING_BYTES];
        self.starts = Vec::with_capacity(names.len() + 1);
        self.shared = Vec::with_capacity(names.len());
        let (mut last, mut this) = (String::new(), String::new());
        for (place, name) in names.enumerate() {
            push_folded(&mut this, name);
            let pairs = this.bytes().zip(last.bytes()).take(usize::from(u16::MAX));
            let shared = pairs.take_while(|(a, b)| a == b).count();
            counter.push(place, this.as_bytes(), shared);
            self.starts.push(self.text.len() as u32);
            self.shared.push(shared as u16);
            self.text.extend_from_slice(&this.as_bytes()[shared.saturating_sub(CONTEXT_BYTES)..]);
            self.text.push(END);
            std::mem::swap(&mut last, &mut this);
            this.clear();
        }
        self.starts.push(self.text.len() as u32);
        self.text.resize(self.text.len().next_multiple_of(64) + TAIL_BYTES, END);
        self.text.shrink_to_fit();
        self.grams = counter.finish(self.shared.len());
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns how many names contain the needle, if that can be told without searching the text.
    pub(super) fn known_count(&self, needle: &Needle<'_>) -> Option<usize> {
        self.grams.count(&needle.grams)
    }

    /// Hands the places of the names that contain the needle to `take`, neighbours together. Overwrites `tails`.
    pub(super) fn each_run(&self, needle: &Needle<'_>, tails: &mut Vec<u64>, mut take: impl FnMut(Range<usize>)) {
        #[cfg(test)]
        self.searches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (text, starts, shared) = (&*self.text, &*self.starts, &*self.shared);
        if !needle.probe(text, tails) {
            return;
        }
        let mut place = 0;
        while place < shared.len() {
            let mut from = starts[place] as usize;
            let end = loop {
                let Some(at) = first_bit(tails, from) else { return };
                while starts[place + 1] as usize <= at {
                    place += 1;
                }
                let before = at - starts[place] as usize;
                let ends = needle.ends(&text[..at + needle.tail.len()], before);
                if ends.unwrap_or_else(|| self.has(place, before, needle.head)) {
                    break self.skipped(place) + before + needle.tail.len();
                }
                from = at + 1;
            };
            // All following names that share the needle contain it too.
            let next = place + 1;
            let sharing = shared[next..].iter().take_while(|bytes| usize::from(**bytes) >= end).count();
            take(place..next + sharing);
            place = next + sharing;
        }
    }

    #[cfg(test)]
    pub(super) fn searches(&self) -> usize {
        self.searches.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns whether the needle's head stands in a name, right before this position of the name's part. The bytes
    /// before a part are found in the parts of earlier names.
    #[cold]
    fn has(&self, mut place: usize, mut position: usize, mut head: &[u8]) -> bool {
        loop {
            let part = &self.text[self.starts[place] as usize..][..position];
            let (rest, own) = head.split_at(head.len().saturating_sub(part.len()));
            if !part.ends_with(own) {
                return false;
            }
            if rest.is_empty() {
                return true;
            }
            let skipped = self.skipped(place);
            let Some(before) = (0..place).rev().find(|before| self.skipped(*before) < skipped) else { return false };
            (place, position, head) = (before, skipped - self.skipped(before), rest);
        }
    }

    /// Returns how many bytes of a name come before its part.
    fn skipped(&self, place: usize) -> usize {
        usize::from(self.shared[place]).saturating_sub(CONTEXT_BYTES)
    }
}

/// Returns the position of the first set bit at `from` or after it. The last 64 bits are not searched.
#[inline]
fn first_bit(bits: &[u64], mut from: usize) -> Option<usize> {
    loop {
        let (word, bit) = (from / 64, from % 64);
        // Shifted twice, because a number of 64 bits cannot be shifted by 64 at once.
        let window = bits[word] >> bit | bits.get(word + 1)? << 1 << (63 - bit);
        if window != 0 {
            return Some(from + window.trailing_zeros() as usize);
        }
        from += 64;
    }
}

/// A folded, non-empty text to look for, without control characters.
pub(super) struct Needle<'a> {
    /// The bytes before the tail.
    head: &'a [u8],
    tail: &'a [u8],
    /// The rarest bytes of the tail, each with its position in the tail.
    probes: [(usize, u8); PROBES],
    /// The needle's last bytes as a number, with the very last byte highest.
    last: u128,
    /// Which bits of `last` belong to the needle.
    mask: u128,
    grams: NeedleGrams,
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
    fn probe(&self, text: &[u8], tails: &mut Vec<u64>) -> bool {
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
    fn ends(&self, text: &[u8], before: usize) -> Option<bool> {
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
