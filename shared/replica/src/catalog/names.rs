//! A block's names, ready to be searched.

use super::needle::{LAST, Needle, TAIL};

/// Ends each name. Names hold no control characters, and no needle that holds this one is searched for.
pub(super) const END: u8 = b'\n';
/// So much of what a name shares is kept: with the first byte of its own, a tail.
const CONTEXT: usize = TAIL - 1;

/// Lower-cased names, in the block's order, in one text. An unknown name is an empty one.
#[derive(Default)]
pub(super) struct Names {
    /// Each name's part: what it does not share with the name before, after its context, and [`END`].
    /// [`LAST`] bytes of this stand before the first part; behind the last one it is filled up to a
    /// multiple of 64 bytes and [`TAIL`] more.
    text: Vec<u8>,
    /// Where each part begins, and where the last one ends.
    starts: Vec<u32>,
    /// How many bytes at its beginning each name shares with the one before.
    shared: Vec<u16>,
}

impl Names {
    /// Takes in these names instead.
    pub(super) fn index<'a>(&mut self, names: impl ExactSizeIterator<Item = &'a str>) {
        self.text = vec![END; LAST];
        self.starts = Vec::with_capacity(names.len() + 1);
        self.shared = Vec::with_capacity(names.len());
        let (mut last, mut this) = (String::new(), String::new());
        for name in names {
            push_lower(&mut this, name);
            let pairs = this.bytes().zip(last.bytes()).take(usize::from(u16::MAX));
            let shared = pairs.take_while(|(a, b)| a == b).count();
            self.starts.push(self.text.len() as u32);
            self.shared.push(shared as u16);
            self.text.extend_from_slice(&this.as_bytes()[shared.saturating_sub(CONTEXT)..]);
            self.text.push(END);
            std::mem::swap(&mut last, &mut this);
            this.clear();
        }
        self.starts.push(self.text.len() as u32);
        self.text.resize(self.text.len().next_multiple_of(64) + TAIL, END);
        self.text.shrink_to_fit();
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Hands over the places of the names that contain the needle, given where its tail may be.
    pub(super) fn each_match(&self, needle: &Needle<'_>, tails: &[u64], mut take: impl FnMut(usize)) {
        let (text, starts, shared) = (&*self.text, &*self.starts, &*self.shared);
        // Where in the last name the needle ended.
        let (mut place, mut end) = (0, usize::MAX);
        while place < shared.len() {
            if end > usize::from(shared[place]) {
                let mut from = starts[place] as usize;
                end = loop {
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
            }
            take(place);
            place += 1;
        }
    }

    /// Whether a needle's head stands in a name before that position of its part. What precedes a part
    /// stands in those of earlier names.
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

    /// How many bytes of a name precede its part.
    fn skipped(&self, place: usize) -> usize {
        usize::from(self.shared[place]).saturating_sub(CONTEXT)
    }
}

/// The first bit set from a position on, the last 64 left out.
#[inline]
fn first_bit(bits: &[u64], mut from: usize) -> Option<usize> {
    loop {
        let (word, bit) = (from / 64, from % 64);
        // Shifted twice, since no number can be shifted by 64.
        let window = bits[word] >> bit | bits.get(word + 1)? << 1 << (63 - bit);
        if window != 0 {
            return Some(from + window.trailing_zeros() as usize);
        }
        from += 64;
    }
}

/// Adds a text in lower case, made character by character, whatever its neighbours.
pub(super) fn push_lower(lower: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_ascii() {
            lower.push(character.to_ascii_lowercase());
        } else {
            lower.extend(character.to_lowercase());
        }
    }
}
