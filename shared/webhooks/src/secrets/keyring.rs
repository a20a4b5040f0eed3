//! The keyring: the keys that seal endpoint secrets, as a document in Secrets Manager.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::layout::Format;
use common::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The current key, which seals secrets, and older keys, which only open them.
///
/// Its document is `{"current":"<id>","keys":[{"id":"<id>","key":"<base64 of 32 bytes>"}],"rotated_at":<ms>}`. A
/// deployment can generate only text, so it makes `{"generated":"<43 or more letters and digits>"}` instead. That stands
/// for one key, the SHA-256 of the text. The first rotation turns it into the other form.
#[derive(Clone, PartialEq, Eq)]
pub struct Keyring {
    current: String,
    keys: BTreeMap<String, SealingKey>,
    /// When the current key was added, if a rotation has added it.
    rotated_at: Option<Timestamp>,
}

/// An AES-256 key.
type SealingKey = [u8; 32];

/// How long after a rotation the former key may still seal a secret: 2 s in which a function goes on with the keyring from
/// before, 30 s until it has stored what it sealed (the time-out of `account`), and the rest for clocks that differ.
/// What that key has sealed opens meanwhile, because a function that meets an unknown key reads the keyring again.
const IN_USE_FOR: Duration = Duration::from_mins(1);
/// The id of a key that was made from generated text.
const GENERATED_ID: &str = "generated";
/// The format of the document.
const FORMAT: Format = Format::first("keyring");
/// This many random letters and digits have 256 bits.
const GENERATED_LENGTH: usize = 43;

/// What is wrong with a keyring. The text repeats nothing of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyringError {
    /// It is neither of the two documents, or both.
    #[error("the keyring must be a JSON object of `current` and `keys` (each with `id` and `key`), or of `generated`")]
    Form,
    #[error("the keyring was written by a newer release")]
    Newer,
    /// A key's id has another length or other characters.
    #[error("a key's id must have 1 to 32 characters of A-Z a-z 0-9 _ -")]
    Id,
    /// Two keys have the same id.
    #[error("the keyring has two keys with the same id")]
    Twice,
    #[error("a key must be the base64 of 32 bytes")]
    Key,
    #[error("the keyring's current key is not among its keys")]
    Current,
    /// A generated text that may have fewer than the 256 bits of a key.
    #[error("a generated keyring must have 43 or more characters, all of them letters or digits")]
    Generated,
}

/// A document of either form. Members that it does not know are ignored: without its keyring nothing can be delivered,
/// also not after a rollback from a release that added members.
#[derive(Deserialize)]
struct Document {
    layout: Option<u32>,
    current: Option<String>,
    keys: Option<Vec<Entry>>,
    generated: Option<String>,
    rotated_at: Option<i64>,
}

#[derive(Serialize)]
struct WrittenDocument {
    current: String,
    keys: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    id: String,
    key: String,
}

impl Keyring {
    /// Reads a keyring from its document.
    pub fn parse(document: &str) -> Result<Self, KeyringError> {
        let Document { layout, current, keys: entries, generated, rotated_at } =
            serde_json::from_str(document).map_err(|_| KeyringError::Form)?;
        FORMAT.supported(layout.unwrap_or(1)).map_err(|_| KeyringError::Newer)?;
        let (current, entries) = match (current, entries, generated) {
            (Some(current), Some(entries), None) => (current, entries),
            (None, None, Some(generated)) => return Self::generated(&generated),
            _ => return Err(KeyringError::Form),
        };
        let mut keys = BTreeMap::new();
        for entry in entries {
            if !is_id(&entry.id) {
                return Err(KeyringError::Id);
            }
            let key = STANDARD.decode(entry.key).map_err(|_| KeyringError::Key)?;
            let key = key.try_into().map_err(|_| KeyringError::Key)?;
            if keys.insert(entry.id, key).is_some() {
                return Err(KeyringError::Twice);
            }
        }
        if !keys.contains_key(&current) {
            return Err(KeyringError::Current);
        }
        Ok(Self { current, keys, rotated_at: rotated_at.map(Timestamp::from_millis) })
    }

    fn generated(text: &str) -> Result<Self, KeyringError> {
        if text.len() < GENERATED_LENGTH || !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(KeyringError::Generated);
        }
        let keys = BTreeMap::from([(GENERATED_ID.to_owned(), Sha256::digest(text).into())]);
        Ok(Self { current: GENERATED_ID.to_owned(), keys, rotated_at: None })
    }

    /// Makes a keyring of one new key.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Self { current: String::new(), keys: BTreeMap::new(), rotated_at: None }.with_new_key()
    }

    /// Adds a new current key. The other keys stay, so that what they have sealed still opens.
    pub fn rotate(self, now: Timestamp) -> Result<Self, getrandom::Error> {
        Ok(Self { rotated_at: Some(now), ..self.with_new_key()? })
    }

    fn with_new_key(mut self) -> Result<Self, getrandom::Error> {
        let mut key = SealingKey::default();
        getrandom::fill(&mut key)?;
        // A counter could repeat the id of a key that an operator has removed. A random id does not.
        self.current = format!("{:016x}", getrandom::u64()?);
        self.keys.insert(self.current.clone(), key);
        Ok(self)
    }

    /// Removes all keys but the current one. Only for a keyring whose other keys have nothing left to open.
    #[must_use]
    pub fn without_older(mut self) -> Self {
        self.keys.retain(|id, _| *id == self.current);
        self
    }

    /// Returns for how much longer functions may use the keyring from before the last rotation. Meanwhile, no other
    /// rotation may begin, and no key may be removed.
    pub fn unsettled_for(&self, now: Timestamp) -> Duration {
        let Some(at) = self.rotated_at else { return Duration::ZERO };
        // A clock that was ahead must not hold up rotations for longer.
        let age = u64::try_from(now.millis().saturating_sub(at.millis())).unwrap_or_default();
        IN_USE_FOR.saturating_sub(Duration::from_millis(age))
    }

    /// Returns how many keys it has besides the current one.
    pub fn older(&self) -> usize {
        self.keys.len() - 1
    }

    /// Returns the document, keys included. Only for the one place that stores it.
    pub fn reveal(&self) -> String {
        let entry = |(id, key): (&String, &SealingKey)| Entry { id: id.clone(), key: STANDARD.encode(key) };
        let rotated_at = self.rotated_at.map(Timestamp::millis);
        let document =
            WrittenDocument { current: self.current.clone(), keys: self.keys.iter().map(entry).collect(), rotated_at };
        serde_json::json!(document).to_string()
    }

    /// Returns the id of the key that seals.
    pub fn current_id(&self) -> &str {
        &self.current
    }

    pub(super) fn key(&self, id: &str) -> Option<&SealingKey> {
        self.keys.get(id)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring(…)")
    }
}

fn is_id(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn now() -> Timestamp {
        Timestamp::from_millis(1_795_168_800_000)
    }

    fn document(current: &str, keys: &[(&str, &str)]) -> String {
        let keys: Vec<_> = keys.iter().map(|(id, key)| serde_json::json!({"id": id, "key": key})).collect();
        serde_json::json!({"current": current, "keys": keys}).to_string()
    }

    #[test]
    fn a_document_is_read_strictly() {
        let keyring = Keyring::parse(&document("b", &[("a", KEY), ("b", KEY)])).unwrap();
        assert_eq!((keyring.current_id(), keyring.key("a").unwrap()[31]), ("b", 31));
        for (refused, error) in [
            ("{}", KeyringError::Form),
            ("", KeyringError::Form),
            (r#"{"current":"a","keys":{}}"#, KeyringError::Form),
            (r#"{"current":"a","current":"b","keys":[]}"#, KeyringError::Form),
            (r#"{"current":"a","keys":[],"generated":null,"layout":2}"#, KeyringError::Newer),
            (&format!("{}x", document("a", &[("a", KEY)])), KeyringError::Form),
            (&document("a", &[]), KeyringError::Current),
            (&document("b", &[("a", KEY)]), KeyringError::Current),
            (&document("a", &[("a", KEY), ("a", KEY)]), KeyringError::Twice),
            (&document("", &[("", KEY)]), KeyringError::Id),
            (&document("a:", &[("a:", KEY)]), KeyringError::Id),
            (&document("a", &[("a", KEY), (&"x".repeat(33), KEY)]), KeyringError::Id),
            (&document("a", &[("a", "")]), KeyringError::Key),
            (&document("a", &[("a", &KEY[4..])]), KeyringError::Key),
            (&document("a", &[("a", &KEY.replace('=', ""))]), KeyringError::Key),
            (&document("a", &[("a", &KEY.replace("8=", "9="))]), KeyringError::Key),
        ] {
            assert_eq!(Keyring::parse(refused), Err(error), "{refused}");
        }
    }

    #[test]
    fn members_that_a_newer_release_has_added_are_ignored() {
        let document = format!(r#"{{"current":"a","keys":[{{"id":"a","key":"{KEY}","x":1}}],"more":{{}}}}"#);
        assert_eq!(Keyring::parse(&document).unwrap().current_id(), "a");
    }

    #[test]
    fn what_a_deployment_generates_is_a_keyring_that_can_be_rotated() {
        let text = "a1".repeat(32);
        let generated = |text: &str| Keyring::parse(&serde_json::json!({"generated": text}).to_string());
        let keyring = generated(&text).unwrap();
        assert_eq!((keyring.current_id(), keyring.older()), ("generated", 0));
        // printf a1a1… | openssl dgst -sha256 -binary | base64
        assert_eq!(STANDARD.encode(keyring.key("generated").unwrap()), "NJD4BAGIbRLzhh7BkPXBZBmyY0VJepK8RTDiL12LQpU=");
        assert_ne!(generated(&text.replace('a', "b")).unwrap().key("generated"), keyring.key("generated"));
        let rotated = Keyring::parse(&keyring.clone().rotate(now()).unwrap().reveal()).unwrap();
        assert_eq!((rotated.older(), rotated.key("generated")), (1, keyring.key("generated")));
        for refused in [&text[..42], &format!("{}-", &text[1..]), ""] {
            assert_eq!(generated(refused), Err(KeyringError::Generated), "{refused}");
        }
        let both = format!(r#"{{"generated":"{text}","current":"a","keys":[]}}"#);
        assert_eq!(Keyring::parse(&both), Err(KeyringError::Form));
    }

    #[test]
    fn rotation_adds_a_current_key_and_keeps_the_others() {
        let first = Keyring::generate().unwrap();
        let second = first.clone().rotate(now()).unwrap();
        assert_eq!((first.keys.len(), second.keys.len()), (1, 2));
        assert_ne!(first.current_id(), second.current_id());
        assert_ne!(second.key(first.current_id()), second.key(second.current_id()));
        assert_eq!(second.key(first.current_id()), first.key(first.current_id()));
        assert_eq!(Keyring::parse(&second.reveal()), Ok(second.clone()));
        assert_eq!((first.older(), second.older()), (0, 1));
        let alone = second.clone().without_older();
        assert_eq!((alone.older(), alone.key(second.current_id())), (0, second.key(second.current_id())));
        assert_eq!(Keyring::parse(&alone.reveal()), Ok(alone));
    }

    #[test]
    fn a_rotation_is_settled_once_no_function_can_hold_the_keyring_from_before() {
        let seconds_left = |keyring: &Keyring, by: i64| keyring.unsettled_for(now().plus_millis(by * 1_000)).as_secs();
        let first = Keyring::generate().unwrap();
        assert_eq!(seconds_left(&first, 0), 0, "nobody holds another one");
        let rotated = Keyring::parse(&first.rotate(now()).unwrap().reveal()).unwrap();
        assert_eq!([-60, 0, 1, 59, 60, 999].map(|by| seconds_left(&rotated, by)), [60, 60, 59, 1, 0, 0]);
        assert_eq!(rotated.clone().without_older().unsettled_for(now()), rotated.unsettled_for(now()));
        // An older release leaves the time out when it writes.
        let older = document("a", &[("a", KEY)]);
        assert_eq!(seconds_left(&Keyring::parse(&older).unwrap(), 0), 0);
        for extreme in [i64::MIN, i64::MAX] {
            let document = older.replacen('{', &format!("{{\"rotated_at\":{extreme},"), 1);
            assert!(Keyring::parse(&document).unwrap().unsettled_for(now()) <= IN_USE_FOR);
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        let keyring = Keyring::generate().unwrap();
        let shown = format!("{keyring:?}{keyring:#?}");
        assert_eq!(shown, "Keyring(…)Keyring(…)");
        let leaky = document("a", &[("a", KEY)]).replace("\"keys\"", "\"AAECAwQFBgcI\"");
        assert!(!Keyring::parse(&leaky).unwrap_err().to_string().contains("AAEC"));
    }
}
