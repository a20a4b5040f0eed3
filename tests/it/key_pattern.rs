//! The rule that the operator's guide has for secret scanners finds real keys.

use auth::KeyText;
use regex::Regex;

const GUIDE: &str = include_str!("../../docs/operations.md");

/// Returns the regular expression of the rule for gitleaks.
fn pattern() -> Regex {
    let (_, rest) = GUIDE.split_once("regex = '''").unwrap();
    Regex::new(rest.split_once("'''").unwrap().0).unwrap()
}

/// Returns the key of these random bits.
fn random_key() -> KeyText {
    let bits = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
    KeyText::from_bits(bits.try_into().unwrap())
}

#[test]
fn the_rule_finds_every_key_wherever_it_stands_and_nothing_shorter_or_longer() {
    let pattern = pattern();
    for key in std::iter::repeat_with(random_key).take(1_000).chain([[0; 32], [0xff; 32]].map(KeyText::from_bits)) {
        let key = key.reveal();
        for text in [key, &format!("API_KEY=\"{key}\""), &format!("Authorization: Bearer {key}\nHost: example.com")] {
            let found: Vec<&str> = pattern.captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect();
            assert_eq!(found, [key]);
        }
        for text in [&key[..51], &format!("{key}0"), &format!("a{key}")] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }
}
