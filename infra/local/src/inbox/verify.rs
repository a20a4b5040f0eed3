//! Verifies deliveries as a receiver should.

use secrets::{EndpointSecret, service_signature, standard_signature};
use serde::Serialize;
use subtle::ConstantTimeEq;
use types::timestamp::Timestamp;

use super::delivery::Headers;

/// Standard Webhooks: if the timestamp is further off than this, in either direction, the request may be a replay.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
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
pub(super) struct Verdicts {
    service_signature: Verdict,
    standard_signature: Verdict,
    /// Why the standard signature was refused without comparing it.
    standard_problem: Option<&'static str>,
}

impl Verdicts {
    /// Checks a delivery that arrived at `now`.
    pub(super) fn of(secrets: &[EndpointSecret], headers: &Headers, body: &[u8], now: Timestamp) -> Self {
        if secrets.is_empty() {
            let [service_signature, standard_signature] = [Verdict::Unknown; 2];
            return Self { service_signature, standard_signature, standard_problem: None };
        }
        let (standard_signature, standard_problem) = match standard(secrets, headers, body, now) {
            Ok(verdict) => (verdict, None),
            Err(problem) => (Verdict::Wrong, Some(problem)),
        };
        Self { service_signature: service(secrets, headers, body), standard_signature, standard_problem }
    }
}

fn service(secrets: &[EndpointSecret], headers: &Headers, body: &[u8]) -> Verdict {
    let Some(given) = headers.get("x-service-signature") else { return Verdict::Missing };
    verdict(secrets.iter().any(|secret| equal(given, &service_signature(secret, body))))
}

fn standard(
    secrets: &[EndpointSecret],
    headers: &Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<Verdict, &'static str> {
    let trio = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| headers.get(name));
    let [Some(id), Some(timestamp), Some(given)] = trio else { return Ok(Verdict::Missing) };
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
    Ok(verdict(secrets.iter().any(is_of)))
}

fn verdict(is_right: bool) -> Verdict {
    if is_right { Verdict::Verified } else { Verdict::Wrong }
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
