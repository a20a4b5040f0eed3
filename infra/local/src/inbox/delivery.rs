//! A delivery as the inbox shows it, on the page and to scripts, verified as a receiver should.

use std::collections::BTreeMap;

use bytes::Bytes;
use common::timestamp::Timestamp;
use http::{HeaderMap, HeaderValue, request};
use serde::{Serialize, Serializer};
use uuid::Uuid;
use webhooks::secrets::{EndpointSecret, has_standard_signature, is_service_signature};

/// Standard Webhooks: if the timestamp is further off than this, in either direction, the request may be a replay.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// Header values by lower-case name; those of a repeated header are joined by commas.
type Headers = BTreeMap<String, String>;

/// What arrived, and what was found out about it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ReceivedDelivery {
    /// Tells it from every other delivery.
    key: Uuid,
    received_at: Timestamp,
    /// The path that it was sent to, with the query.
    path: String,
    /// From `X-Service-Event`.
    event: Option<String>,
    /// From `X-Service-Delivery-Id`, otherwise from `webhook-id`.
    #[serde(rename = "delivery_id")]
    pub(super) id: Option<String>,
    /// How often this delivery id has arrived so far, this time included. The count starts again if the inbox has
    /// forgotten all earlier arrivals.
    pub(super) seen: u64,
    #[serde(flatten)]
    verification: Verification,
    headers: Headers,
    /// Bytes that are not UTF-8 are shown as U+FFFD.
    #[serde(serialize_with = "lossy")]
    body: Bytes,
}

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum SignatureStatus {
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
struct Verification {
    service_signature: SignatureStatus,
    standard_signature: SignatureStatus,
    /// Why the standard signature was refused without comparing it.
    standard_problem: Option<&'static str>,
}

impl ReceivedDelivery {
    /// Returns how many bytes of a request are kept.
    pub(super) fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        headers.sum::<usize>() + self.path.len() + self.body.len()
    }

    /// Makes a delivery of a request, as if its id were seen for the first time.
    pub(super) fn from_request(
        head: &request::Parts,
        body: Bytes,
        secrets: &[EndpointSecret],
        received_at: Timestamp,
    ) -> Self {
        let headers = joined(&head.headers);
        let header = |name| headers.get(name).cloned();
        Self {
            key: Uuid::new_v4(),
            received_at,
            path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            event: header("x-service-event"),
            id: header("x-service-delivery-id").or_else(|| header("webhook-id")),
            seen: 1,
            verification: Verification::new(secrets, &headers, &body, received_at),
            headers,
            body,
        }
    }
}

impl Verification {
    /// Verifies a delivery that arrived at `now`.
    fn new(secrets: &[EndpointSecret], headers: &Headers, body: &[u8], now: Timestamp) -> Self {
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
    status(secrets.iter().any(|secret| is_service_signature(secret, body, given)))
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
    Ok(status(secrets.iter().any(|secret| has_standard_signature(secret, id, sent_at, body, given))))
}

fn status(is_right: bool) -> SignatureStatus {
    if is_right { SignatureStatus::Verified } else { SignatureStatus::Wrong }
}

/// Parses a time in the only form that is signed: digits without leading zeros.
fn unix_seconds(text: &str) -> Option<Timestamp> {
    let seconds = text.parse::<i64>().ok().filter(|seconds| seconds.to_string() == text)?;
    Some(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

/// Joins the values of repeated headers.
fn joined(map: &HeaderMap) -> Headers {
    let joined = |name| {
        let values = map.get_all(name).iter().map(HeaderValue::as_bytes).map(String::from_utf8_lossy);
        values.collect::<Vec<_>>().join(", ")
    };
    map.keys().map(|name| (name.to_string(), joined(name))).collect()
}

fn lossy<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

#[cfg(test)]
mod tests {
    use super::SignatureStatus::{Unknown, Verified, Wrong};
    use webhooks::secrets::{service_signature, standard_signature};

    use super::*;
    use http::Request;
    use serde_json::json;

    #[test]
    fn the_form_for_scripts_is_pinned() {
        let request = Request::post("/dev/inbox/a?b=c")
            .header("X-Service-Event", "listing.sold")
            .header("webhook-id", "w")
            .header("X-Twice", "1")
            .header("X-Twice", HeaderValue::from_bytes(b"\xff").unwrap());
        let (head, ()) = request.body(()).unwrap().into_parts();
        let now = Timestamp::from_millis(1_795_262_400_001);
        let delivery = ReceivedDelivery::from_request(&head, Bytes::from_static(b"\x00<\xff>"), &[], now);
        assert_eq!(
            json!(delivery),
            json!({
                "key": delivery.key,
                "received_at": "2026-11-21T12:00:00.001Z",
                "path": "/dev/inbox/a?b=c",
                "event": "listing.sold",
                "delivery_id": "w",
                "seen": 1,
                "service_signature": "unknown",
                "standard_signature": "unknown",
                "standard_problem": null,
                "headers": {"x-service-event": "listing.sold", "webhook-id": "w", "x-twice": "1, \u{fffd}"},
                "body": "\0<\u{fffd}>",
            })
        );
    }

    const BODY: &[u8] = b"{\"id\":1}";
    const SENT_SECONDS: i64 = 1_795_262_400;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000 + 999)
    }

    fn secret(bit: u8) -> EndpointSecret {
        EndpointSecret::from_bits([bit; 32])
    }

    /// Returns the headers of a delivery sent at `SENT_SECONDS` and signed with these secrets.
    fn signed(active: u8, valid: &[u8]) -> Headers {
        let secrets: Vec<_> = valid.iter().copied().map(secret).collect();
        let headers = [
            ("x-service-signature", service_signature(&secret(active), BODY)),
            ("webhook-id", "an id".to_owned()),
            ("webhook-timestamp", SENT_SECONDS.to_string()),
            ("webhook-signature", standard_signature(&secrets, "an id", at(SENT_SECONDS), BODY)),
        ];
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn with(mut headers: Headers, name: &str, value: &str) -> Headers {
        headers.insert(name.to_owned(), value.to_owned());
        headers
    }

    /// Returns both statuses that a receiver finds who knows these secrets.
    fn statuses(known: &[u8], headers: &Headers) -> (SignatureStatus, SignatureStatus) {
        let known: Vec<_> = known.iter().copied().map(secret).collect();
        let verification = Verification::new(&known, headers, BODY, at(SENT_SECONDS));
        assert_eq!(verification.standard_problem, None);
        (verification.service_signature, verification.standard_signature)
    }

    fn problem(now: i64, timestamp: &str) -> (SignatureStatus, Option<&'static str>) {
        let headers = with(signed(1, &[1]), "webhook-timestamp", timestamp);
        let verification = Verification::new(&[secret(1)], &headers, BODY, at(now));
        assert_eq!(verification.service_signature, Verified, "this signature does not cover the time");
        (verification.standard_signature, verification.standard_problem)
    }

    #[test]
    fn any_of_the_secrets_and_any_of_the_signatures_will_do() {
        for (known, active, valid, expected) in [
            (&[1][..], 1, &[1][..], (Verified, Verified)),
            (&[2], 1, &[1], (Wrong, Wrong)),
            (&[3, 1], 1, &[1], (Verified, Verified)),
            (&[1], 1, &[2, 1], (Verified, Verified)),
            (&[2], 1, &[2, 1], (Wrong, Verified)),
            (&[], 1, &[1], (Unknown, Unknown)),
        ] {
            assert_eq!(statuses(known, &signed(active, valid)), expected, "{known:?} {active} {valid:?}");
        }
    }

    #[test]
    fn a_time_more_than_five_minutes_off_is_told_apart() {
        let sent = SENT_SECONDS.to_string();
        for (now, expected) in [
            (SENT_SECONDS + 300, (Verified, None)),
            (SENT_SECONDS + 301, (Wrong, Some("too old"))),
            (SENT_SECONDS - 300, (Verified, None)),
            (SENT_SECONDS - 301, (Wrong, Some("too far in the future"))),
        ] {
            assert_eq!(problem(now, &sent), expected, "{now}");
        }
        assert_eq!(problem(SENT_SECONDS, &i64::MAX.to_string()), (Wrong, Some("too far in the future")));
        assert_eq!(problem(SENT_SECONDS, &i64::MIN.to_string()), (Wrong, Some("too old")));
        for bad in ["", "soon", &format!("+{SENT_SECONDS}"), &format!("0{SENT_SECONDS}"), &"9".repeat(20)] {
            assert_eq!(problem(SENT_SECONDS, bad), (Wrong, Some("the timestamp is no Unix time")), "{bad:?}");
        }
    }
}
