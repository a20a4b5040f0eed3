//! A delivery as the inbox shows it, on the page and to scripts.

use bytes::Bytes;
use http::request;
use secrets::EndpointSecret;
use serde::{Serialize, Serializer};
use types::timestamp::Timestamp;

use super::headers::{Headers, joined};
use super::verify::Verification;

/// What arrived, and what was found out about it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ReceivedDelivery {
    pub(super) received_at: Timestamp,
    /// The path that it was sent to, with the query.
    pub(super) path: String,
    /// From `X-Service-Event`.
    pub(super) event: Option<String>,
    /// From `X-Service-Delivery-Id`, otherwise from `webhook-id`.
    #[serde(rename = "delivery_id")]
    pub(super) id: Option<String>,
    /// How often this delivery id has arrived so far, this time included. The count starts again if the inbox has
    /// forgotten all earlier arrivals.
    pub(super) seen: u64,
    #[serde(flatten)]
    pub(super) verification: Verification,
    pub(super) headers: Headers,
    /// Bytes that are not UTF-8 are shown as U+FFFD.
    #[serde(serialize_with = "lossy")]
    pub(super) body: Bytes,
}

impl ReceivedDelivery {
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

fn lossy<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Request};
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

    #[test]
    fn our_own_delivery_id_comes_first() {
        let request = Request::post("/").header("webhook-id", "w").header("X-Service-Delivery-Id", "d");
        let (head, ()) = request.body(()).unwrap().into_parts();
        let delivery = ReceivedDelivery::from_request(&head, Bytes::new(), &[], Timestamp::from_millis(0));
        assert_eq!(delivery.id.as_deref(), Some("d"));
    }
}
