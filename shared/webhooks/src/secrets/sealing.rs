//! Endpoint secrets as they are stored: sealed with AES-256-GCM, each for one endpoint only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use thiserror::Error;

use super::keyring::Keyring;
use super::secret::EndpointSecret;
use common::ids::EndpointId;

/// Separates the key's id, which cannot contain it, from the base64 of nonce, ciphertext and tag.
const SEPARATOR: char = ':';

/// Why a secret cannot be sealed or opened. The text repeats nothing of the sealed secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The text is not one that [`Keyring::seal`] made.
    #[error("the sealed secret is malformed")]
    Form,
    /// The keyring has no key with this id, for example because it was removed.
    #[error("the keyring lacks the key that sealed the secret")]
    UnknownKey,
    /// The text was changed, was sealed for another endpoint, or was sealed under a different key with the same id.
    #[error("the sealed secret does not open for this endpoint")]
    Broken,
    #[error("the operating system returned no random bytes for a nonce")]
    NoRandomness,
}

impl Keyring {
    /// Seals a secret for an endpoint under the current key. The result is `<key id>:<base64>`.
    pub fn seal(&self, endpoint: EndpointId, secret: &EndpointSecret) -> Result<String, SealError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let mut sealed = secret.bits().to_vec();
        self.cipher(self.current_id())?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), context(endpoint), &mut sealed)
            .map_err(|_| SealError::Broken)?;
        Ok(format!("{}{SEPARATOR}{}", self.current_id(), STANDARD.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens a secret that was sealed for this endpoint under any of the keys.
    pub fn open(&self, endpoint: EndpointId, sealed: &str) -> Result<EndpointSecret, SealError> {
        let (id, encoded) = sealed.split_once(SEPARATOR).ok_or(SealError::Form)?;
        let cipher = self.cipher(id)?;
        let mut bytes = STANDARD.decode(encoded).map_err(|_| SealError::Form)?;
        let (nonce, text) = bytes.split_first_chunk_mut().ok_or(SealError::Form)?;
        let opened = cipher
            .open_in_place(Nonce::assume_unique_for_key(*nonce), context(endpoint), text)
            .map_err(|_| SealError::Broken)?;
        let bits = <[u8; 32]>::try_from(&*opened).map_err(|_| SealError::Form)?;
        Ok(EndpointSecret::from_bits(bits))
    }

    /// Seals a secret anew under the current key. Returns `None` if the current key has sealed it already.
    pub fn reseal(&self, endpoint: EndpointId, sealed: &str) -> Result<Option<String>, SealError> {
        let secret = self.open(endpoint, sealed)?;
        if sealed.split_once(SEPARATOR).is_some_and(|(id, _)| id == self.current_id()) {
            return Ok(None);
        }
        self.seal(endpoint, &secret).map(Some)
    }

    fn cipher(&self, id: &str) -> Result<LessSafeKey, SealError> {
        let key = self.key(id).ok_or(SealError::UnknownKey)?;
        UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new).map_err(|_| SealError::UnknownKey)
    }
}

/// Returns the additional data that binds a sealed secret to its endpoint. The secret does not open if it is copied
/// to another endpoint.
fn context(endpoint: EndpointId) -> Aad<[u8; 16]> {
    Aad::from(endpoint.uuid().into_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const ENDPOINT: u128 = 0x6f96_19ff_8b86_d011_b42d_00c0_4fc9_64ff;
    const OTHER: u128 = 0x6f96_19ff_8b86_d011_b42d_00c0_4fc9_64fe;
    /// One key of the bytes 0 to 31, with the id "k-1".
    const KEYRING: &str =
        r#"{"current":"k-1","keys":[{"id":"k-1","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}]}"#;
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
        let rotated = keyring().rotate(common::timestamp::Timestamp::from_millis(0)).unwrap();
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
}
