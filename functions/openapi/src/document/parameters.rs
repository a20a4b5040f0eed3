//! The parameters of requests, and their schemas.

use api::{PAGE, PAGE_SIZE};
use serde_json::{Value, json};
use types::paging::Paging;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{KnownFormat, Object, ObjectBuilder, Ref, Required, SchemaFormat, Type};

pub(super) const IF_NONE_MATCH: &str = "If-None-Match";

pub(super) const IF_MODIFIED_SINCE: &str = "If-Modified-Since";

/// Returns the request headers that operations accept, for the document's components.
pub(super) fn shared() -> [(&'static str, Parameter); 2] {
    let description = "The `ETag` of a response that you have. If nothing has changed, you get a 304 without a body.";
    let example = "\"5f2d0c7be9a84413b6d1f0a2c3e4d5b6\"";
    let since = "The `Last-Modified` of a response that you have. You get a 304 if no quote in the figures was observed \
                 later. A quote that arrived late is not seen by its date. `If-None-Match` sees every change; beside it \
                 this header is ignored.";
    let date = "Fri, 20 Nov 2026 10:00:00 GMT";
    [
        (IF_NONE_MATCH, parameter(ParameterIn::Header, IF_NONE_MATCH, description, &text(), example)),
        (IF_MODIFIED_SINCE, parameter(ParameterIn::Header, IF_MODIFIED_SINCE, since, &text(), date)),
    ]
}

/// Returns a reference to a parameter among the document's components.
pub(super) fn reference(name: &str) -> Ref {
    Ref::new(format!("#/components/parameters/{name}"))
}

/// Describes a path parameter, which is always required.
pub(super) fn path(name: &str, description: &str, schema: &Object, example: impl Into<Value>) -> Parameter {
    parameter(ParameterIn::Path, name, description, schema, example)
}

/// Describes a query parameter, which is always optional.
pub(super) fn query(name: &str, description: &str, schema: &Object, example: impl Into<Value>) -> Parameter {
    parameter(ParameterIn::Query, name, description, schema, example)
}

/// Describes a header that a delivery always carries.
pub(super) fn header(name: &str, description: &str, schema: &Object, example: impl Into<Value>) -> Parameter {
    let header = parameter(ParameterIn::Header, name, description, schema, example);
    ParameterBuilder::from(header).required(Required::True).build()
}

/// Describes `page` and `page_size`.
pub(super) fn paging() -> [Parameter; 2] {
    let page = ObjectBuilder::from(integer(1)).default(Some(json!(1))).build();
    let size = ObjectBuilder::from(integer(1))
        .maximum(Some(Paging::MAX_SIZE as isize))
        .default(Some(json!(Paging::DEFAULT_SIZE)))
        .build();
    [
        query(PAGE, "The page number, starting at 1.", &page, 1),
        query(PAGE_SIZE, "The number of records per page.", &size, Paging::DEFAULT_SIZE),
    ]
}

/// Any text.
pub(super) fn text() -> Object {
    Object::with_type(Type::String)
}

/// Any text except the empty one.
pub(super) fn word() -> Object {
    ObjectBuilder::from(text()).min_length(Some(1)).build()
}

/// A hyphenated UUID, in upper or lower case.
pub(super) fn uuid() -> Object {
    ObjectBuilder::from(text()).format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))).build()
}

/// Text that matches a pattern.
pub(super) fn matching(pattern: &str) -> Object {
    ObjectBuilder::from(text()).pattern(Some(pattern)).build()
}

/// One of a fixed list of values.
pub(super) fn one_of(values: &[&str]) -> Object {
    ObjectBuilder::from(text()).enum_values(Some(values.iter().copied())).build()
}

/// A 64-bit integer of at least `minimum`.
pub(super) fn integer(minimum: isize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(minimum))
        .build()
}

fn parameter(
    place: ParameterIn,
    name: &str,
    description: &str,
    schema: &Object,
    example: impl Into<Value>,
) -> Parameter {
    let example = example.into();
    ParameterBuilder::new()
        .name(name)
        // `parameter_in` must be called before `required`. Until then the builder describes a path parameter, and makes
        // it required in any case.
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(ObjectBuilder::from(schema.clone()).examples([example.clone()])))
        .example(Some(example))
        .build()
}
