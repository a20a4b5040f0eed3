//! Searches all that a run of the tests writes for secrets: the text of a key, a secret of an endpoint, a key of the
//! keyring. Each has a form, so no list of secrets is needed. Nothing but the answers to who made them may have them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use api::auth::KeyText;
use webhooks::secrets::EndpointSecret;

/// Where secrets were found, in any test of this process.
static FOUND: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

const KEY: (&str, usize) = ("sk_", 52);
const SECRET: (&str, usize) = ("whsec_", 50);
const KEYRING_KEY: (&str, usize) = ("key\":\"", 50);

/// Returns what kind of secret these bytes contain, if any.
pub fn secret_in(bytes: &[u8]) -> Option<&'static str> {
    // A document within a document has its quotes escaped.
    let text = String::from_utf8_lossy(bytes).replace('\\', "");
    let has = |(prefix, length): (&str, usize), is_secret: fn(&str) -> bool| {
        text.match_indices(prefix).any(|(at, _)| text.get(at..at + length).is_some_and(is_secret))
    };
    if has(KEY, |text| KeyText::parse(text).is_some()) {
        return Some("the text of a key");
    }
    if has(SECRET, |text| EndpointSecret::parse(text).is_ok() && text != example()) {
        return Some("a secret of an endpoint");
    }
    has(KEYRING_KEY, |text| text.ends_with('=') && EndpointSecret::parse(&format!("whsec_{}", &text[6..])).is_ok())
        .then_some("a key of the keyring")
}

/// Returns the secret of the guide's example, which is public.
fn example() -> String {
    EndpointSecret::from_bits(std::array::from_fn(|byte| byte as u8)).reveal()
}

/// Notes a secret that is written where none may be. The next stack that ends fails its test.
pub(crate) fn search(bytes: &[u8], place: &str) {
    if let Some(kind) = secret_in(bytes) {
        FOUND.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("{kind} in {place}"));
    }
}

/// Fails if a secret was found anywhere.
pub(crate) fn assert_none_found() {
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(found.is_empty() || std::thread::panicking(), "{found:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use webhooks::secrets::Keyring;

    #[test]
    fn each_kind_of_secret_is_found_in_a_document_within_a_document() {
        let key = KeyText::from_bits([7; 32]).reveal().to_owned();
        let secret = EndpointSecret::from_bits([7; 32]).reveal();
        let keyring = Keyring::generate().unwrap().reveal();
        for (text, kind) in
            [(&key, "the text of a key"), (&secret, "a secret of an endpoint"), (&keyring, "a key of the keyring")]
        {
            let nested = serde_json::json!({ "body": serde_json::json!({ "of": text }).to_string() }).to_string();
            assert_eq!(secret_in(text.as_bytes()), Some(kind));
            assert_eq!(secret_in(nested.as_bytes()), Some(kind), "{nested}");
        }
        assert_eq!(secret_in(key.replacen("sk_1", "sk_2", 1).as_bytes()), None);
        assert_eq!(secret_in(format!("sk_ whsec_ {} \"key\":\"value\"", example()).as_bytes()), None);
    }
}
