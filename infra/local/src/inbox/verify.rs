//! Verifies deliveries as a receiver should.

use secrets::{EndpointSecret, service_signature, standard_signature};
use serde::Serialize;
use subtle::ConstantTimeEq;
use types::timestamp::Timestamp;

use super::headers::Headers;

/// Standard Webhooks: if the timestamp is further off than this, in either direction, the request may be a replay.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SignatureStatus {
    /// It was made with a secret of the endpoint.
    Verified,
    /// It was not, or its timestamp is more than five minutes off.
    Wrong,
    /// There is none, or one of its headers is missing.
    Missing,
    /// No secret of the endpoint is known.
    Unknown,
}

/// The results of checking both signatures of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verification {
    service_signature: SignatureStatus,
    standard_signature: SignatureStatus,
    /// Why the standard signature was refused without comparing it.
    standard_problem: Option<&'static str>,
}

impl Verification {
    /// Verifies a delivery that arrived at `now`.
    pub(super) fn new(secrets: &[EndpointSecret], headers: &Headers, body: &[u8], now: Timestamp) -> Self {
        if secrets.is_empty() {
            let [service_signature, standard_signature] = [SignatureStatus::Unknown; 2];
            return Self { service_signature, standard_signature, standard_problem: None };
        }
        let (standard_signature, standard_problem) = match standard_status(secrets, headers, body, now) {
            Ok(status) => (status, None),
            Err(problem) => (SignatureStatus::Wrong, Some(problem)),
        };
        Self { service_signature: service_status(secrets, headers, body), standard_signature, standard_problem }
    }
}

fn service_status(secrets: &[EndpointSecret], headers: &Headers, body: &[u8]) -> SignatureStatus {
    let Some(given) = headers.get("x-service-signature") else { return SignatureStatus::Missing };
    status(secrets.iter().any(|secret| equal(given, &service_signature(secret, body))))
}

fn standard_status(
    secrets: &[EndpointSecret],
    headers: &Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<SignatureStatus, &'static str> {
    let trio = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| headers.get(name));
    let [Some(id), Some(timestamp), Some(given)] = trio else { return Ok(SignatureStatus::Missing) };
    let sent_at = unix_seconds(timestamp).ok_or("the timestamp is no Unix time")?;
    let age = now.seconds() - sent_at.seconds();
    if age > TOLERANCE_SECONDS {
        return Err("too old");
    }
    if age < -TOLERANCE_SECONDS {
        return Err("too far in the future");
    }
    let is_of = |secret| {
        let expected = standard_signature([secret], id, sent_at, body);
        given.split(' ').any(|one| equal(one, &expected))
    };
    Ok(status(secrets.iter().any(is_of)))
}

fn status(is_right: bool) -> SignatureStatus {
    if is_right { SignatureStatus::Verified } else { SignatureStatus::Wrong }
}

/// Parses a time in the only form that is signed: digits without leading zeros.
fn unix_seconds(text: &str) -> Option<Timestamp> {
    let seconds = text.parse::<i64>().ok().filter(|seconds| seconds.to_string() == text)?;
    Some(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

/// Compares in a time that does not reveal how much of a guess is right.
fn equal(given: &str, expected: &str) -> bool {
    given.as_bytes().ct_eq(expected.as_bytes()).into()
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
