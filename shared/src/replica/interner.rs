//! Strings that many records share, kept once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A string's number in an [`Interner`].
pub(super) type Symbol = u32;

/// Each distinct string once, by number. Strings are never given up: names repeat for ever.
#[derive(Default)]
pub(super) struct Interner {
    strings: Vec<Box<str>>,
    index: HashTable<Symbol>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// The string's number, new if need be.
    pub(super) fn intern(&mut self, text: &str) -> Symbol {
        if let Some(symbol) = self.find(text) {
            return symbol;
        }
        let symbol = self.strings.len() as Symbol;
        self.strings.push(text.into());
        let (strings, hasher) = (&self.strings, &self.hasher);
        self.index.insert_unique(hasher.hash_one(text), symbol, |known| hasher.hash_one(&*strings[*known as usize]));
        symbol
    }

    /// The string's number, if it has one.
    pub(super) fn find(&self, text: &str) -> Option<Symbol> {
        let hash = self.hasher.hash_one(text);
        self.index.find(hash, |known| &*self.strings[*known as usize] == text).copied()
    }

    /// The string of a number.
    pub(super) fn get(&self, symbol: Symbol) -> &str {
        &self.strings[symbol as usize]
    }
}
