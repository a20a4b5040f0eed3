//! What the operator's guide says to secret scanners, compared with real keys.

use auth::KeyText;
use regex::Regex;

const GUIDE: &str = include_str!("../../docs/operations.md");
/// The bits of the guide's example.
const EXAMPLE: [u8; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    31,
];

fn section() -> &'static str {
    GUIDE.split("\n### ").find(|section| section.starts_with("Leaked keys\n")).unwrap()
}

/// Returns the regular expression of the rule for gitleaks.
fn pattern() -> Regex {
    let (_, rest) = section().split_once("regex = '''").unwrap();
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
    for key in
        std::iter::repeat_with(random_key).take(1_000).chain([[0; 32], [0xff; 32], EXAMPLE].map(KeyText::from_bits))
    {
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

#[test]
fn the_guides_example_is_a_key() {
    assert!(section().contains(KeyText::from_bits(EXAMPLE).reveal()));
}
