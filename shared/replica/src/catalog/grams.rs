//! What is known of a block's names without reading them. A *gram* is a byte, or two or three that follow each other.
//!
//! For each byte and each pair, it is known how many names contain it. So needles of one or two bytes, which are in
//! very many names, are counted without reading any. Of triples, a filter says which ones are surely in no name. So for
//! a longer needle, only those blocks are read that may have all of its triples.
//!
//! The filter has 32,768 bits for 384 names. If n different triples occur, a triple that does not occur finds its bit
//! set with a probability of 1 - e^(-n/32768). That is 2 % for 600 triples, of names that differ in a number, and 7 %
//! for 2,500, of names that differ in ten bytes each. It has to be as long as that for needles of three bytes, which
//! have only one triple. Filter and counts together take 12 to 19 bytes for each name.

/// The length of the filter, in 64 bits. It is short in tests, so that other triples often set the same bits.
const FILTER_WORDS: usize = if cfg!(test) { 2 } else { 512 };
const FILTER_BITS: usize = 64 * FILTER_WORDS;
/// How many bytes and pairs there are, as numbers.
const SHORT_GRAMS: usize = 1 << 16;

/// The grams of a block's names.
#[derive(Default)]
pub(super) struct Grams {
    /// The bytes and pairs that occur, as numbers, in ascending order.
    short: Box<[u16]>,
    /// How many names contain each of them.
    counts: Box<[u16]>,
    /// The filter: a bit is set if a triple with this hash occurs.
    triples: Box<[u64]>,
}

/// The grams of a needle.
pub(super) enum NeedleGrams {
    /// The needle is one byte or a pair.
    Short(u16),
    /// The bits of its triples.
    Long(Vec<usize>),
}

impl NeedleGrams {
    /// Returns the grams of a needle, which must not contain the byte 0.
    pub(super) fn new(needle: &[u8]) -> Self {
        if needle.len() <= 2 { Self::Short(number(needle)) } else { Self::Long(needle.windows(3).map(bit).collect()) }
    }
}

impl Grams {
    /// Returns how many names contain the needle, if that can be told without reading them.
    pub(super) fn count(&self, needle: &NeedleGrams) -> Option<usize> {
        match needle {
            NeedleGrams::Short(gram) => {
                Some(self.short.binary_search(gram).map_or(0, |at| usize::from(self.counts[at])))
            }
            NeedleGrams::Long(bits) if bits.iter().all(|bit| self.may_have(*bit)) => None,
            NeedleGrams::Long(_) => Some(0),
        }
    }

    fn may_have(&self, bit: usize) -> bool {
        self.triples.get(bit / 64).is_some_and(|word| (*word >> (bit % 64)) & 1 == 1)
    }
}

/// Makes the [`Grams`] of blocks, one after the other. It has a place for every gram, so make it once for many blocks.
///
/// Each name shares a beginning with the name before. A gram that first ends in this beginning goes on, so only the
/// rest of each name is looked at.
pub(super) struct GramCounter {
    /// The grams of the last name, in the order of their first ends.
    open: Vec<OpenGram>,
    /// Whether a gram is among these.
    is_open: Vec<bool>,
    /// How many names contain each gram, without those since an open one was opened.
    counts: Vec<u16>,
    /// The grams with a count.
    counted: Vec<u16>,
    triples: [u64; FILTER_WORDS],
}

struct OpenGram {
    gram: u16,
    /// Where in the name the gram first ends.
    end: usize,
    /// The place of the first of the names that have the gram there.
    since: usize,
}

impl Default for GramCounter {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            is_open: vec![false; SHORT_GRAMS],
            counts: vec![0; SHORT_GRAMS],
            counted: Vec::new(),
            triples: [0; FILTER_WORDS],
        }
    }
}

impl GramCounter {
    /// Takes in the name in the next place. Its first `shared` bytes are those of the name before.
    pub(super) fn push(&mut self, place: usize, name: &[u8], shared: usize) {
        self.close_behind(shared, place);
        for end in shared + 1..=name.len() {
            let known = &name[..end];
            self.open(number(&known[end - 1..]), end, place);
            if end >= 2 {
                self.open(number(&known[end - 2..]), end, place);
            }
            if end >= 3 {
                let bit = bit(&known[end - 3..]);
                self.triples[bit / 64] |= 1 << (bit % 64);
            }
        }
    }

    /// Returns the grams of all names, and is ready for the next block. `len` is the number of names.
    pub(super) fn finish(&mut self, len: usize) -> Grams {
        self.close_behind(0, len);
        self.counted.sort_unstable();
        let counts = self.counted.iter().map(|gram| std::mem::take(&mut self.counts[usize::from(*gram)])).collect();
        let triples = Box::new(std::mem::replace(&mut self.triples, [0; FILTER_WORDS]));
        Grams { short: self.counted.drain(..).collect(), counts, triples }
    }

    fn open(&mut self, gram: u16, end: usize, place: usize) {
        if !std::mem::replace(&mut self.is_open[usize::from(gram)], true) {
            self.open.push(OpenGram { gram, end, since: place });
        }
    }

    /// Closes the grams that end behind the first `shared` bytes. The name in `place` does not have them there.
    fn close_behind(&mut self, shared: usize, place: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end > shared) {
            let gram = usize::from(open.gram);
            self.is_open[gram] = false;
            if self.counts[gram] == 0 {
                self.counted.push(open.gram);
            }
            // A block has less than 2^16 names.
            self.counts[gram] += (place - open.since) as u16;
        }
    }
}

/// Returns the number of a byte or a pair. No pair has the number of a byte, because names do not contain the byte 0.
fn number(gram: &[u8]) -> u16 {
    gram.iter().fold(0, |number, byte| number << 8 | u16::from(*byte))
}

/// Returns the filter's bit for a triple.
fn bit(triple: &[u8]) -> usize {
    let number = triple.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    (number.wrapping_mul(0x9E37_79B1) >> (u32::BITS - FILTER_BITS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grams(counter: &mut GramCounter, names: &[String]) -> Grams {
        let mut last = "";
        for (place, name) in names.iter().enumerate() {
            let shared = name.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
            counter.push(place, name.as_bytes(), shared);
            last = name;
        }
        counter.finish(names.len())
    }

    proptest! {
        #[test]
        fn what_is_told_of_a_needle_is_exact(
            blocks in prop::collection::vec(prop::collection::vec("[abß]{0,7}", 0..30), 1..4),
            needle in "[abß]{1,4}",
        ) {
            let (mut counter, needle_grams) = (GramCounter::default(), NeedleGrams::new(needle.as_bytes()));
            for names in blocks {
                let containing = names.iter().filter(|name| name.contains(&needle)).count();
                match grams(&mut counter, &names).count(&needle_grams) {
                    Some(count) => prop_assert_eq!(count, containing),
                    None => prop_assert!(needle.len() > 2),
                }
            }
        }
    }
}
