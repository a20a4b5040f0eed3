//! The response headers. Each is described once, as a component that responses refer to by name.

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{
    Header, HeaderBuilder, KnownFormat, Object, ObjectBuilder, Ref, ResponseBuilder, SchemaFormat, Type,
};

use api::CacheControl;

/// The headers of every response to a request whose key was checked.
pub(super) const BUDGET: [&str; 2] = ["RateLimit-Policy", "RateLimit"];
/// The same in a response that may come before a key was checked.
pub(super) const BUDGET_IF_KNOWN: [&str; 2] = ["RateLimit-Policy.trouble", "RateLimit.trouble"];
/// The headers that tell the state that a page, or figures, were made from.
pub(super) const LOG_POSITION: &str = "X-Log-Position";
pub(super) const LAST_MODIFIED: &str = "Last-Modified";

/// The headers of every response.
pub(crate) const EVERY: [&str; 4] = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/// Every header component. A header that differs between responses has one component for each case; the part of
/// its name after the `.` is not part of the header's name.
pub(super) fn all() -> Vec<(&'static str, Header)> {
    let budget = "0 if no key was checked.";
    vec![
        ("X-Request-Id", always("Names this response. Quote it when you ask about it.", text(&["JKJaXmPLvHcESHA="]))),
        ("X-RateLimit-Limit", always(&format!("Requests allowed per minute for this scope, {budget}"), number(0, 60))),
        ("X-RateLimit-Remaining", always(&format!("Requests left in the current minute, {budget}"), number(0, 59))),
        ("X-RateLimit-Reset", always("Seconds until the next minute begins.", seconds())),
        ("RateLimit-Policy", always(POLICY, policy())),
        ("RateLimit-Policy.trouble", sometimes(&format!("{POLICY} Present if a key was checked."), policy())),
        ("RateLimit", always(LEFT, left())),
        ("RateLimit.trouble", sometimes(&format!("{LEFT} Present if a key was checked."), left())),
        (
            LOG_POSITION,
            always(
                "The position, in the log of changes, of the state that the page shows. Pages with the same position show \
                 the same state.",
                number(0, 4711),
            ),
        ),
        (
            LAST_MODIFIED,
            always(
                "When the newest quote in the figures was observed, to send in `If-Modified-Since`. The `ETag` is more \
                 exact: quotes may arrive late, or twice within a second.",
                text(&["Fri, 20 Nov 2026 10:00:00 GMT"]),
            ),
        ),
        ("ETag", always("Tag of this body in this encoding, to send in `If-None-Match`.", tag())),
        ("Vary", sometimes("Present if the body is longer than 1,024 bytes uncompressed.", one("Accept-Encoding"))),
        ("Content-Encoding", sometimes("Present if the body is compressed.", one("gzip"))),
        (
            cache_control(CacheControl::PrivateNoCache),
            always("Store it if you like, but ask again before each use.", one("private, no-cache")),
        ),
        (cache_control(CacheControl::NoStore), always("Do not store it.", one("no-store"))),
        (cache_control(CacheControl::Public), always("Store it for up to five minutes.", one("public, max-age=300"))),
        ("WWW-Authenticate", always("The authentication scheme to use.", one("Bearer"))),
        ("Allow", always("The methods that the path takes.", one("GET, HEAD"))),
        ("Retry-After.budget", always("Seconds to wait: until the next minute begins.", seconds())),
        ("Retry-After.trouble", always("Seconds to wait before trying again.", number(1, 1))),
    ]
}

/// Returns the name of the component for this value of `Cache-Control`.
pub(super) fn cache_control(cache: CacheControl) -> &'static str {
    match cache {
        CacheControl::PrivateNoCache => "Cache-Control.private",
        CacheControl::NoStore => "Cache-Control.no-store",
        CacheControl::Public => "Cache-Control.public",
    }
}

/// Adds references to these header components to a response.
pub(super) fn add(response: ResponseBuilder, components: &[&str]) -> ResponseBuilder {
    components.iter().fold(response, |response, component| {
        let name = component.split('.').next().unwrap_or(component);
        response.header_ref(name, Ref::new(format!("#/components/headers/{component}")))
    })
}

/// Describes a header that is always present. The library's `Header` has no field for `required`, so it is added as an
/// extension; the library writes extensions into the object under their own names, even without `x-`.
fn always(description: &str, schema: Object) -> Header {
    let required = Extensions::from_iter([("required", true)]);
    HeaderBuilder::from(sometimes(description, schema)).extensions(Some(required)).build()
}

fn sometimes(description: &str, schema: Object) -> Header {
    HeaderBuilder::new().description(Some(description)).schema(Some(schema)).build()
}

const POLICY: &str = "The budget of this scope: requests (`q`) in a window of seconds (`w`).";
const LEFT: &str = "What is left of it: requests (`r`), and seconds until it is full again (`t`).";

fn policy() -> Object {
    matching(text(&["\"catalog:read\";q=60;w=60"]), r#"^"[a-z:]+";q=[0-9]+;w=60$"#)
}

fn left() -> Object {
    matching(text(&["\"catalog:read\";r=59;t=17"]), r#"^"[a-z:]+";r=[0-9]+;t=[0-9]+$"#)
}

fn matching(text: Object, pattern: &str) -> Object {
    ObjectBuilder::from(text).pattern(Some(pattern)).build()
}

fn text(examples: &[&str]) -> Object {
    ObjectBuilder::new().schema_type(Type::String).examples(examples.iter().copied()).build()
}

fn one(value: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value])).build()
}

fn number(minimum: usize, example: u32) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(minimum))
        .examples([json!(example)])
        .build()
}

fn seconds() -> Object {
    let number = ObjectBuilder::from(number(1, 17));
    number.maximum(Some(60_usize)).build()
}

fn tag() -> Object {
    let example = "\"5f2d0c7be9a84413b6d1f0a2c3e4d5b6\"";
    matching(text(&[example]), r#"^"[0-9a-f]{32}(-gzip)?"$"#)
}
