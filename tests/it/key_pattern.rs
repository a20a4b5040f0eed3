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
    GUIDE.split("\n## ").find(|section| section.starts_with("Leaked keys\n")).unwrap()
}

/// Returns the regular expression of the rule for gitleaks.
fn pattern() -> Regex {
    let (_, rest) = section().split_once("regex = '''").unwrap();
    Regex::new(rest.split_once("'''").unwrap().0).unwrap()
}

/// Returns what the guide's example says about a step.
fn example(step: &str) -> &'static str {
    let (_, rest) = section().split_once(&format!("\n| {step} | `")).unwrap_or_else(|| panic!("no step {step}"));
    rest.split('`').next().unwrap()
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
fn the_examples_checksum_is_computed_as_the_guide_says() {
    let (key, body, sum) = (example("key"), example("its first 46 characters"), example("their CRC-32"));
    let digits = example("the same in base 62: the last 6 characters");
    assert_eq!(KeyText::from_bits(EXAMPLE).reveal(), key);
    assert_eq!((body, digits), key.split_at(46));
    let alphabet: Vec<u8> = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').collect();
    let mut number: u32 = sum.parse().unwrap();
    let mut written = Vec::new();
    for _ in 0..6 {
        written.insert(0, alphabet[(number % 62) as usize]);
        number /= 62;
    }
    assert_eq!((number, written.as_slice()), (0, digits.as_bytes()));
}
