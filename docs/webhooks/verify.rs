//! Checks the two signatures of one saved delivery: `WEBHOOK_SECRET=… verify HEADERS.json < BODY`
//!
//! To install the libraries: `cargo add hmac sha2 hex http standardwebhooks`

use std::collections::HashMap;
use std::error::Error;
use std::io::Read;

// region: plain
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
// endregion

use http::HeaderMap;
use standardwebhooks::{Webhook, WebhookError};

fn main() -> Result<(), Box<dyn Error>> {
    let secret = std::env::var("WEBHOOK_SECRET")?;
    let path = std::env::args().nth(1).ok_or("name a file of headers")?;
    let given: HashMap<String, String> = serde_json::from_slice(&std::fs::read(path)?)?;
    let headers: HeaderMap = (&given).try_into()?;
    let mut body = Vec::new();
    std::io::stdin().read_to_end(&mut body)?;

    let signature = headers.get("x-service-signature").map_or(&[][..], |value| value.as_bytes());
    println!("X-Service-Signature: {}", verdict(is_genuine(&secret, &body, signature)));
    println!("webhook-signature: {}", verdict(is_genuine_and_recent(&secret, &body, &headers)?));
    Ok(())
}

// region: plain
/// `signature` is the value of `X-Service-Signature`, empty if there is none.
fn is_genuine(secret: &str, body: &[u8], signature: &[u8]) -> bool {
    let Some(Ok(tag)) = signature.strip_prefix(b"sha256=").map(hex::decode) else { return false };
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.chain_update(body).verify_slice(&tag).is_ok()
}
// endregion

/// Fails if the secret is malformed.
fn is_genuine_and_recent(secret: &str, body: &[u8], headers: &HeaderMap) -> Result<bool, WebhookError> {
    let verifier = Webhook::new(secret)?;
    Ok(verifier.verify(body, headers).is_ok())
}

fn verdict(valid: bool) -> &'static str {
    if valid { "valid" } else { "invalid" }
}
