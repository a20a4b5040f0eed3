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
#[path = "sealing_tests.rs"]
mod tests;
