//! The response headers, each described once and referred to by name.

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{Header, HeaderBuilder, Object, ObjectBuilder, Ref, ResponseBuilder, Type};

use api::CacheControl;

/// The headers of every answer.
pub(crate) const EVERY: [&str; 4] = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/// Every header component. Those that differ by answer have a suffix, which is not part of the header's name.
pub(super) fn all() -> [(&'static str, Header); 14] {
    let budget = "0 where no key was checked.";
    [
        ("X-Request-Id", always("Names this answer; quote it when you ask about it.", text(&["JKJaXmPLvHcESHA="]))),
        ("X-RateLimit-Limit", always(&format!("Requests allowed per minute for this scope; {budget}"), number(0, 60))),
        ("X-RateLimit-Remaining", always(&format!("Requests left in this minute; {budget}"), number(0, 59))),
        ("X-RateLimit-Reset", always("Seconds until the minute resets.", seconds())),
        ("ETag", always("Tag of this answer in this encoding, for `If-None-Match`.", tag())),
        ("Vary", sometimes("On every answer that is long enough to be compressed.", one("Accept-Encoding"))),
        ("Content-Encoding", sometimes("On compressed answers.", one("gzip"))),
        (cache_control(CacheControl::PrivateNoCache), always("Keep it, but ask each time.", one("private, no-cache"))),
        (cache_control(CacheControl::NoStore), always("Do not keep it.", one("no-store"))),
        (cache_control(CacheControl::Public), always("Keep it for five minutes.", one("public, max-age=300"))),
        ("WWW-Authenticate", always("The scheme that is wanted.", one("Bearer"))),
        ("Allow", always("The methods that the path takes.", one("GET, HEAD"))),
        ("Retry-After.budget", always("Seconds until the minute resets.", seconds())),
        ("Retry-After.trouble", always("Seconds after which to try again.", number(1, 1))),
    ]
}

/// The component that describes a kind of `Cache-Control`.
pub(super) fn cache_control(cache: CacheControl) -> &'static str {
    match cache {
        CacheControl::PrivateNoCache => "Cache-Control.private",
        CacheControl::NoStore => "Cache-Control.no-store",
        CacheControl::Public => "Cache-Control.public",
    }
}

/// Adds the headers that the components describe.
pub(super) fn add(response: ResponseBuilder, components: &[&str]) -> ResponseBuilder {
    components.iter().fold(response, |response, component| {
        let name = component.split('.').next().unwrap_or(component);
        response.header_ref(name, Ref::new(format!("#/components/headers/{component}")))
    })
}

/// `required` has no field of its own in the library; what it flattens into the object need not start with `x-`.
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
