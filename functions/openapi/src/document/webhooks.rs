//! The deliveries of webhooks: one `POST` operation for each event.

use serde_json::json;
use utoipa::openapi::path::{Operation, OperationBuilder, Parameter, PathItem};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::KnownFormat;
use utoipa::openapi::{
    ContentBuilder, HttpMethod, Object, ObjectBuilder, Paths, PathsBuilder, Ref, Required, Response, SchemaFormat, Type,
};

use super::constants::JSON;
use super::parameters::{self, header, integer, matching, one_of, uuid};
use super::schema_set::Schemas;
use crate::events::{self, DocumentedEvent};

pub(super) const TAG: &str = "Webhooks";

const DELIVERY: &str = "6c1d2a47-0b35-5e8f-9c74-3a6f1b2d8e90";
const CREATED: &str = "2026-11-20T10:04:31.250Z";
/// The Unix time of [`CREATED`], in seconds.
const SENT_SECONDS: i64 = 1_795_169_072;
const SIGNATURE: &str = "sha256=5bf1f6f1d0a7d0f1b0dca7a4bd2c5e2e1c9b9f5e7a6d4c3b2a1908f7e6d5c4b3";
const STANDARD_SIGNATURE: &str = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=";

/// Returns the operation of every event, by the event's name.
pub(super) fn all() -> Paths {
    let items = events::all().map(|event| (event.kind.as_str(), PathItem::new(HttpMethod::Post, delivery(&event))));
    items.into_iter().fold(PathsBuilder::new(), |paths, (name, item)| paths.path(name, item)).build()
}

fn delivery(event: &DocumentedEvent) -> Operation {
    let kept = "Any 2xx status within 10 seconds acknowledges the delivery.";
    let tried_again = "Any other status, or no response within 10 seconds, is a failure. The delivery is retried after \
        30 seconds, 5 minutes, 30 minutes, 2 hours, 6 hours and 24 hours.";
    let name = event.kind.as_str();
    let operation = OperationBuilder::new()
        .tags(Some([TAG]))
        .summary(Some(event.meaning))
        .operation_id(Some(operation_id(name)))
        .securities(Some([]))
        .parameter(header("X-Service-Event", "The event's name, as in the body.", &one_of(&[name]), name))
        .request_body(Some(body(event)))
        .response("2XX", Response::new(kept))
        .response("default", Response::new(tried_again));
    shared()
        .into_iter()
        .fold(operation, |operation, (name, _)| operation.parameter_ref(parameters::reference(name)))
        .build()
}

/// Returns the `operationId` of an event: `onListingSold` for `listing.sold`.
fn operation_id(event: &str) -> String {
    format!("on{}", pascal_case(event))
}

/// Returns the name of the schema of an event's body: `ListingSoldEvent` for `listing.sold`.
fn schema_name(event: &str) -> String {
    format!("{}Event", pascal_case(event))
}

fn pascal_case(event: &str) -> String {
    let words = event.split('.').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

/// Returns the headers that are the same for every event, for the document's components.
pub(super) fn shared() -> [(&'static str, Parameter); 6] {
    let hex = matching("^sha256=[0-9a-f]{64}$");
    let base64 = matching("^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$");
    let signature = "`sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the whole text of the \
        endpoint's secret.";
    let same = "The delivery's id, the same on every retry. Drop a delivery whose id you have seen.";
    let sent = "The Unix time at which this attempt was sent, in seconds.";
    let standard = "The Standard Webhooks signatures, separated by spaces: one for each valid secret.";
    [
        ("X-Service-Signature", signature, &hex, json!(SIGNATURE)),
        ("X-Service-Delivery-Id", same, &uuid(), json!(DELIVERY)),
        ("X-Service-Timestamp", sent, &integer(0), json!(SENT_SECONDS)),
        ("webhook-id", "The delivery's id, as in `X-Service-Delivery-Id`.", &uuid(), json!(DELIVERY)),
        (
            "webhook-timestamp",
            "The Unix time of this attempt, as in `X-Service-Timestamp`.",
            &integer(0),
            json!(SENT_SECONDS),
        ),
        ("webhook-signature", standard, &base64, json!(STANDARD_SIGNATURE)),
    ]
    .map(|(name, description, schema, example)| (name, header(name, description, schema, example)))
}

fn body(event: &DocumentedEvent) -> RequestBody {
    let data = event.kind.sample_data();
    let example = json!({"id": DELIVERY, "event": event.kind, "created_at": CREATED, "data": data});
    let schema = Ref::from_schema_name(schema_name(event.kind.as_str()));
    let content = ContentBuilder::new().schema(Some(schema)).example(Some(example)).build();
    RequestBodyBuilder::new()
        .description(Some("The event."))
        .required(Some(Required::True))
        .content(JSON, content)
        .build()
}

/// Returns the schema of every event's body. Each has a name, because most generators of clients skip webhooks but make
/// a type for each named schema.
pub(super) fn envelopes() -> Schemas {
    let named = |event: DocumentedEvent| (schema_name(event.kind.as_str()), envelope(&event).into());
    events::all().into_iter().map(named).collect()
}

fn envelope(event: &DocumentedEvent) -> Object {
    let described = |schema: Object, text: &str| ObjectBuilder::from(schema).description(Some(text)).build();
    let time = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .build();
    let names = ["id", "event", "created_at", "data"];
    let object = ObjectBuilder::new()
        .description(Some(format!("{}.", event.meaning)))
        .property("id", described(uuid(), "The delivery's id, the same on every retry."))
        .property("event", described(one_of(&[event.kind.as_str()]), "The event's name."))
        .property("created_at", described(time, "When the event happened, in UTC with milliseconds."))
        .property("data", Ref::from_schema_name(&*event.data));
    names.into_iter().fold(object, ObjectBuilder::required).build()
}
