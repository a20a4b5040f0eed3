use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const ENDPOINT: u128 = 0x6f96_19ff_8b86_d011_b42d_00c0_4fc9_64ff;
const OTHER: u128 = 0x6f96_19ff_8b86_d011_b42d_00c0_4fc9_64fe;
/// One key of the bytes 0 to 31, with the id "k-1".
const KEYRING: &str = r#"{"current":"k-1","keys":[{"id":"k-1","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}]}"#;
/// A secret of 32 bytes, each 7, sealed under that key with the bytes 100 to 111 as nonce. Made with Python's
/// `cryptography`.
const SEALED: &str = "k-1:ZGVmZ2hpamtsbW5vTxzZYX7uUZk5ZVjv3WJt+kXFAQ2Ma/R1oNarT/ykok99Mrh1pHd++oM9yPtWMbY0";

fn id(bits: u128) -> EndpointId {
    Uuid::from_u128(bits).into()
}

fn keyring() -> Keyring {
    Keyring::parse(KEYRING).unwrap()
}

fn secret() -> EndpointSecret {
    EndpointSecret::from_bits([7; 32])
}

#[test]
fn the_form_is_pinned() {
    assert_eq!(keyring().open(id(ENDPOINT), SEALED), Ok(secret()));
    let sealed = keyring().seal(id(ENDPOINT), &secret()).unwrap();
    assert_eq!((sealed.len(), &sealed[..4]), (SEALED.len(), "k-1:"));
}

#[test]
fn a_secret_opens_for_its_endpoint_alone() {
    assert_eq!(keyring().open(id(OTHER), SEALED), Err(SealError::Broken));
}

#[test]
fn no_two_seals_are_alike() {
    let [one, two] = [(); 2].map(|()| keyring().seal(id(ENDPOINT), &secret()).unwrap());
    assert_ne!(one[..20], two[..20], "the same nonce twice");
    assert_ne!(one[20..], two[20..]);
}

#[test]
fn older_keys_open_and_the_current_one_seals() {
    let rotated = keyring().rotate().unwrap();
    assert_eq!(rotated.open(id(ENDPOINT), SEALED), Ok(secret()));
    let renewed = rotated.reseal(id(ENDPOINT), SEALED).unwrap().unwrap();
    assert!(renewed.starts_with(rotated.current_id()));
    assert_eq!(rotated.open(id(ENDPOINT), &renewed), Ok(secret()));
    assert_eq!(rotated.reseal(id(ENDPOINT), &renewed), Ok(None));
    assert_eq!(keyring().open(id(ENDPOINT), &renewed), Err(SealError::UnknownKey));
    assert_eq!(rotated.reseal(id(OTHER), &renewed), Err(SealError::Broken));
}

#[test]
fn another_key_of_the_same_id_does_not_open() {
    let other = Keyring::parse(&KEYRING.replace("AAEC", "AAED")).unwrap();
    assert_eq!(other.open(id(ENDPOINT), SEALED), Err(SealError::Broken));
}

#[test]
fn what_is_no_sealed_secret_is_refused() {
    for (text, error) in [
        ("", SealError::Form),
        ("k-1", SealError::Form),
        ("k-1:", SealError::Form),
        ("k-1:AAAA", SealError::Form),
        ("k-1:ZGVmZ2hpamtsbW5v", SealError::Broken),
        ("k-2:AAAA", SealError::UnknownKey),
        (":AAAA", SealError::UnknownKey),
        (&format!("{SEALED}\n"), SealError::Form),
        (&SEALED[4..], SealError::Form),
    ] {
        assert_eq!(keyring().open(id(ENDPOINT), text), Err(error), "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_secret_opens_again(bits: [u8; 32], endpoint: u128) {
        let secret = EndpointSecret::from_bits(bits);
        let endpoint = id(endpoint);
        let sealed = keyring().seal(endpoint, &secret).unwrap();
        prop_assert!(!sealed.contains(&secret.reveal()[6..20]));
        prop_assert_eq!(keyring().open(endpoint, &sealed), Ok(secret));
    }

    #[test]
    fn one_changed_character_is_noticed(at in 0..SEALED.len(), to in "[A-Za-z0-9+/=:-]") {
        let mut text = SEALED.to_owned();
        text.replace_range(at..=at, &to);
        prop_assert_eq!(keyring().open(id(ENDPOINT), &text).is_ok(), text == SEALED);
    }
}
