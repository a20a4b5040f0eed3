//! The response headers. Each is described once, as a component that responses refer to by name.

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{Header, HeaderBuilder, Object, ObjectBuilder, Ref, ResponseBuilder, Type};

use api::CacheControl;

/// The headers of every response.
pub(crate) const EVERY: [&str; 4] = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/// Every header component. A header that differs between responses has one component for each case; the part of
/// its name after the `.` is not part of the header's name.
pub(super) fn all() -> [(&'static str, Header); 14] {
    let budget = "0 if no key was checked.";
    [
        ("X-Request-Id", always("Names this response. Quote it when you ask about it.", text(&["JKJaXmPLvHcESHA="]))),
        ("X-RateLimit-Limit", always(&format!("Requests allowed per minute for this scope, {budget}"), number(0, 60))),
        ("X-RateLimit-Remaining", always(&format!("Requests left in the current minute, {budget}"), number(0, 59))),
        ("X-RateLimit-Reset", always("Seconds until the next minute begins.", seconds())),
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

fn text(examples: &[&str]) -> Object {
    ObjectBuilder::new().schema_type(Type::String).examples(examples.iter().copied()).build()
}

fn one(value: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value])).build()
}

fn number(minimum: usize, example: u32) -> Object {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(minimum)).examples([json!(example)]).build()
}

fn seconds() -> Object {
    let number = ObjectBuilder::from(number(1, 17));
    number.maximum(Some(60_usize)).build()
}

fn tag() -> Object {
    let example = "\"5f2d0c7be9a84413b6d1f0a2c3e4d5b6\"";
    ObjectBuilder::from(text(&[example])).pattern(Some(r#"^"[0-9a-f]{32}(-gzip)?"$"#)).build()
}
