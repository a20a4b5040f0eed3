//! An endpoint's secret (specification 6.13.2): `whsec_` and the base64 of 32 random bytes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

const PREFIX: &str = "whsec_";

/// The secret that signs an endpoint's deliveries. It is shown once and stored sealed, and its `Debug` does not
/// show it.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointSecret([u8; 32]);

/// The text is not that of a secret. The error does not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be whsec_ and the base64 of 32 bytes")]
pub struct SecretError;

impl EndpointSecret {
    /// Makes a secret of 256 random bits.
    pub const fn from_bits(bits: [u8; 32]) -> Self {
        Self(bits)
    }

    /// Reads a secret from its text.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError)?;
        let bits = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        bits.try_into().map(Self).map_err(|_| SecretError)
    }

    /// Returns the text. The owner sees it once, and it is the key of `X-Service-Signature`.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0))
    }

    /// Returns the bytes that the text encodes. They are the key of the Standard Webhooks signature, and they are
    /// what is sealed.
    pub(super) const fn bits(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for EndpointSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn the_form_is_pinned() {
        let bits = std::array::from_fn(|i| i as u8);
        assert_eq!(EndpointSecret::from_bits(bits).reveal(), TEXT);
        assert_eq!(EndpointSecret::parse(TEXT), Ok(EndpointSecret::from_bits(bits)));
        for bad in [
            "",
            "whsec_",
            &TEXT[6..],
            &TEXT[..TEXT.len() - 1],
            &TEXT.replace("8=", "9="),
            &TEXT.replace("whsec_", "WHSEC_"),
            &format!("{TEXT}\n"),
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
        ] {
            assert_eq!(EndpointSecret::parse(bad), Err(SecretError), "{bad:?}");
        }
    }

    #[test]
    fn nothing_shows_the_secret() {
        let shown = format!("{:?}{}", EndpointSecret::parse(TEXT).unwrap(), SecretError);
        assert!(!shown.contains(&TEXT[6..12]));
    }

    proptest! {
        #[test]
        fn a_secret_is_read_back(bits: [u8; 32]) {
            let secret = EndpointSecret::from_bits(bits);
            prop_assert_eq!(EndpointSecret::parse(&secret.reveal()), Ok(secret));
        }
    }
}
