//! An endpoint's secret (specification 6.13.2), which is `whsec_` and the base64 of 32 random bytes, and the two signatures
//! that it makes. By them a receiver verifies a delivery: one is our own, the other that of Standard Webhooks.

use std::fmt::{self, Display};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use common::timestamp::Timestamp;

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

/// Returns the value of `X-Service-Signature` (specification 6.5.1): the HMAC-SHA256 of the body, keyed with the
/// secret's whole text.
pub fn service_signature(secret: &EndpointSecret, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(service_mac(secret, body).finalize().into_bytes()))
}

/// Returns whether this is the value of `X-Service-Signature`. The time that it takes does not reveal how much of a guess
/// is right.
pub fn is_service_signature(secret: &EndpointSecret, body: &[u8], given: &str) -> bool {
    let tag = given.strip_prefix("sha256=").and_then(|tag| hex::decode(tag).ok());
    tag.is_some_and(|tag| service_mac(secret, body).verify_slice(&tag).is_ok())
}

/// Returns the value of `webhook-signature` (specification 6.5.2, Standard Webhooks 1.0.0): one signature for each of
/// the secrets.
///
/// `id` must be the value of `webhook-id`. The whole seconds of `sent_at` must be the value of `webhook-timestamp`.
pub fn standard_signature<'s>(
    secrets: impl IntoIterator<Item = &'s EndpointSecret>,
    id: impl Display,
    sent_at: Timestamp,
    body: &[u8],
) -> String {
    let head = format!("{id}.{}.", sent_at.seconds());
    let signatures = secrets.into_iter().map(|secret| v1(secret.bits(), &head, body));
    signatures.collect::<Vec<_>>().join(" ")
}

fn v1(key: &[u8], head: &str, body: &[u8]) -> String {
    format!("v1,{}", STANDARD.encode(mac(key, &[head.as_bytes(), body]).finalize().into_bytes()))
}

/// Returns whether one of the signatures in `webhook-signature` was made with the secret.
pub fn has_standard_signature(
    secret: &EndpointSecret,
    id: impl Display,
    sent_at: Timestamp,
    body: &[u8],
    given: &str,
) -> bool {
    let mac = mac(secret.bits(), &[format!("{id}.{}.", sent_at.seconds()).as_bytes(), body]);
    let mut tags = given.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
    tags.any(|tag| mac.clone().verify_slice(&tag).is_ok())
}

fn service_mac(secret: &EndpointSecret, body: &[u8]) -> Hmac<Sha256> {
    mac(secret.reveal().as_bytes(), &[body])
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mac = Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().fold(mac, Mac::chain_update)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    const ID: &str = "0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e";
    const BODY: &str =
        r#"{"id":"0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e","event":"wallet.deposit","data":{"name":"Ünï"}}"#;

    /// RFC 4231, sections 4.2, 4.3, 4.4 and 4.7: short, textual and binary keys, and one longer than a block.
    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let cases: [(&[u8], &[u8], &str); 4] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (&[0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, expected) in cases {
            assert_eq!(hex::encode(mac(key, &[data]).finalize().into_bytes()), expected);
            let (head, tail) = data.split_at(3);
            assert_eq!(hex::encode(mac(key, &[head, tail]).finalize().into_bytes()), expected);
        }
    }

    /// Two examples from the tests of Standard Webhooks' own libraries.
    #[test]
    fn the_standard_signature_is_that_of_its_libraries() {
        for (key, head, body, expected) in [
            (
                "plJ3nmyCDGBKInavdOK15jsl",
                "msg_loFOjxBNrRLzqYUf.1731705121.",
                r#"{"event_type":"ping","data":{"success":true}}"#,
                "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
            ),
            (
                "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
                "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk.1649367553.",
                r#"{"email":"test@example.com","username":"test_user"}"#,
                "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
            ),
        ] {
            assert_eq!(v1(&STANDARD.decode(key).unwrap(), head, body.as_bytes()), expected);
        }
    }

    /// Computed with Python's `hmac`.
    #[test]
    fn both_headers_of_a_delivery_are_pinned() {
        let old = EndpointSecret::from_bits(std::array::from_fn(|i| i as u8));
        let next = EndpointSecret::from_bits([0xff; 32]);
        assert_eq!(
            service_signature(&old, BODY.as_bytes()),
            "sha256=39e76c1ab4b0e3f20a24ab0eaea8eea19aafb42bebfb59df5a32a142ce29023b"
        );
        let sent_at = Timestamp::from_millis(1_795_262_400_999);
        assert_eq!(
            standard_signature([&old, &next], ID, sent_at, BODY.as_bytes()),
            "v1,KBOvIxY3RlDcY9D7o+AVMWs9gwAMOQXi+GV+uZMrKo0= v1,t4cJjWq1g3tTFZ+olG1Xwi3VtcTxUHvMFAtu066rjvc="
        );
    }
}
