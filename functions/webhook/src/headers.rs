//! The headers of a delivery (specification 6.4.1): the service's own, and those of Standard Webhooks.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, InvalidHeaderValue, USER_AGENT};
use secrets::{EndpointSecret, service_signature, standard_signature};
use types::rotation::Secrets;
use types::timestamp::Timestamp;
use webhooks::delivery::Delivery;

/// Builds the headers of an attempt that is sent at `sent_at`.
pub(crate) fn headers(
    delivery: &Delivery,
    secrets: &Secrets<EndpointSecret>,
    sent_at: Timestamp,
) -> Result<HeaderMap, InvalidHeaderValue> {
    let body = delivery.body.as_bytes();
    let id = HeaderValue::try_from(delivery.id.to_string())?;
    let timestamp = HeaderValue::from(sent_at.seconds());
    let mut headers = HeaderMap::with_capacity(9);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("marketplace-webhooks/1"));
    let service = service_signature(secrets.active(sent_at), body);
    let standard = standard_signature(secrets.valid(sent_at), delivery.id, sent_at, body);
    for (name, value) in [
        ("x-service-signature", HeaderValue::try_from(service)?),
        ("x-service-event", HeaderValue::from_static(delivery.event.as_str())),
        ("x-service-delivery-id", id.clone()),
        ("x-service-timestamp", timestamp.clone()),
        ("webhook-id", id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", HeaderValue::try_from(standard)?),
    ] {
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}
