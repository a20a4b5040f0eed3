//! Checks a delivery's signatures without using the code that made them.

use ring::hmac::{HMAC_SHA256, Key, sign};
use secrets::EndpointSecret;
use standardwebhooks::Webhook;

use crate::receiver::Received;
use crate::verifiers::SignatureValidity;

impl Received {
    /// Which of its two signatures were made with this secret.
    pub fn signed_with(&self, secret: &EndpointSecret) -> SignatureValidity {
        let text = secret.reveal();
        let service = sign(&Key::new(HMAC_SHA256, text.as_bytes()), &self.body);
        let sent_at = self.header("webhook-timestamp").parse().unwrap();
        let standard = Webhook::new(&text).unwrap().sign(self.header("webhook-id"), sent_at, &self.body).unwrap();
        SignatureValidity {
            service: self.header("x-service-signature") == format!("sha256={}", hex::encode(service)),
            standard: self.header("webhook-signature").split(' ').any(|one| one == standard),
        }
    }
}
