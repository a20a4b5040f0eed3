//! The text of an API key (specification 5.2.2): `sk_`, 43 random base62 characters, and 6 characters of checksum.

use std::fmt;

use sha2::{Digest, Sha256};

const PREFIX: &str = "sk_";
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARS: usize = 43;
const CHECKSUM_CHARS: usize = 6;
const BODY_END: usize = PREFIX.len() + RANDOM_CHARS;
const LENGTH: usize = BODY_END + CHECKSUM_CHARS;

/// The text of an API key. It is shown once and never stored, and its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

/// The SHA-256 of a key's text, which is stored in place of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

/// Why a text is not that of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTextError {
    /// It is not `sk_` with 49 letters and digits.
    NotAKey,
    /// It has the form of a key, but its checksum is wrong, so nobody was ever given it.
    WrongChecksum,
}

impl KeyText {
    /// Makes a key of 256 random bits.
    pub fn from_bits(bits: [u8; 32]) -> Self {
        let mut text = format!("{PREFIX}{}", base62(&bits, RANDOM_CHARS));
        text.push_str(&checksum(&text));
        Self(text)
    }

    /// Reads a key from a caller's text. Returns `None` if it is malformed or its checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        Self::examine(text).ok()
    }

    /// Reads a key from a text, or says why it is none. Callers are not told this (specification 5.4.2).
    pub fn examine(text: &str) -> Result<Self, KeyTextError> {
        let well_formed = text.len() == LENGTH
            && text.starts_with(PREFIX)
            && text.bytes().skip(PREFIX.len()).all(|b| b.is_ascii_alphanumeric());
        if !well_formed {
            return Err(KeyTextError::NotAKey);
        }
        let (body, sum) = text.split_at(BODY_END);
        if checksum(body) == sum { Ok(Self(text.to_owned())) } else { Err(KeyTextError::WrongChecksum) }
    }

    /// Finds the keys in a text of any kind, each once. If there is none, says whether something looks like one.
    pub fn find(text: &str) -> Result<Vec<Self>, KeyTextError> {
        let (mut found, mut error) = (Vec::new(), KeyTextError::NotAKey);
        for (at, _) in text.match_indices(PREFIX) {
            let rest = &text[at..];
            let end = rest.bytes().skip(PREFIX.len()).take_while(u8::is_ascii_alphanumeric).count() + PREFIX.len();
            match Self::examine(&rest[..end]) {
                Ok(key) if !found.contains(&key) => found.push(key),
                Err(KeyTextError::WrongChecksum) => error = KeyTextError::WrongChecksum,
                Ok(_) | Err(KeyTextError::NotAKey) => {}
            }
        }
        if found.is_empty() { Err(error) } else { Ok(found) }
    }

    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Returns the last four characters, by which an owner tells keys apart.
    pub fn last4(&self) -> &str {
        &self.0[LENGTH - 4..]
    }

    /// Returns the text itself, for the one time that it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

impl KeyHash {
    /// Returns the hash in hex, as it is written in the table.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

/// Returns the CRC-32/ISO-HDLC of the ASCII bytes, in base62.
fn checksum(body: &str) -> String {
    base62(&crc32fast::hash(body.as_bytes()).to_be_bytes(), CHECKSUM_CHARS)
}

/// Returns a big-endian number in base62, left-padded with `0`. It uses schoolbook division.
fn base62(number: &[u8], width: usize) -> String {
    let mut number = number.to_vec();
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0u32;
        for byte in &mut number {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 62) as u8;
            remainder = value % 62;
        }
        *digit = ALPHABET[remainder as usize];
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_form_is_pinned() {
        let zero = KeyText::from_bits([0; 32]);
        assert_eq!(zero.reveal().len(), 52);
        assert!(zero.reveal().starts_with("sk_0000000000000000000000000000000000000000000"));
        assert_eq!(base62(&[0xff; 4], 6), "4gfFC3");
        assert_eq!(checksum("123456789"), base62(&0xCBF4_3926_u32.to_be_bytes(), 6));
    }

    #[test]
    fn a_wrong_checksum_is_told_from_what_is_no_key() {
        let key = KeyText::from_bits([7; 32]).reveal().to_owned();
        let mistyped = key.replacen("sk_1", "sk_2", 1);
        assert_ne!(mistyped, key);
        assert_eq!(KeyText::examine(&mistyped), Err(KeyTextError::WrongChecksum));
        for other in [&key[..51], &key.replace("sk_", "pk_"), &key.replace("sk_1", "sk_-"), ""] {
            assert_eq!(KeyText::examine(other), Err(KeyTextError::NotAKey));
        }
        assert!(KeyText::examine(&key).is_ok());
    }

    #[test]
    fn keys_are_found_in_any_text_each_once() {
        let [one, other] = [[7; 32], [8; 32]].map(KeyText::from_bits);
        let (first, second) = (one.reveal(), other.reveal());
        let text = format!("é sk_ Bearer {first}\", {first}\nsk_{second} sk_{}", &first[3..51]);
        assert_eq!(KeyText::find(&text), Ok(vec![one.clone(), other.clone()]));
        let mistyped = format!("key={}", first.replacen("sk_1", "sk_2", 1));
        assert_eq!(KeyText::find(&mistyped), Err(KeyTextError::WrongChecksum));
        for none in [format!("{first}x"), "sk_".to_owned(), String::new()] {
            assert_eq!(KeyText::find(&none), Err(KeyTextError::NotAKey));
        }
    }

    #[test]
    fn nothing_shows_the_key() {
        let key = KeyText::from_bits([7; 32]);
        assert!(!format!("{key:?}{:?}", key.hash()).contains(&key.reveal()[3..10]));
    }

    proptest! {
        #[test]
        fn a_key_is_read_back(bits in any::<[u8; 32]>()) {
            let key = KeyText::from_bits(bits);
            prop_assert_eq!(KeyText::parse(key.reveal()), Some(key));
        }

        #[test]
        fn one_wrong_character_is_noticed(bits in any::<[u8; 32]>(), at in 3usize..52, to in 0usize..62) {
            let mut text = KeyText::from_bits(bits).reveal().to_owned().into_bytes();
            let before = text[at];
            text[at] = ALPHABET[to];
            let parsed = KeyText::parse(std::str::from_utf8(&text).unwrap());
            prop_assert_eq!(parsed.is_some(), before == ALPHABET[to]);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = KeyText::parse(&text);
            let _ = KeyText::parse(&format!("sk_{text}"));
        }
    }
}
