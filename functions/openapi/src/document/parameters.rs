//! The parameters of requests.

use api::{PAGE, PAGE_SIZE};
use serde_json::{Value, json};
use types::paging::Paging;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{KnownFormat, Object, ObjectBuilder, Ref, Required, SchemaFormat, Type};

/// What money looks like in a query.
const MONEY: &str = r"^[0-9]{1,12}(\.[0-9]{1,2})?$";
/// The request header that a 304 answers.
pub(super) const IF_NONE_MATCH: &str = "If-None-Match";

/// The header that every `GET` takes, for the components.
pub(super) fn shared() -> [(&'static str, Parameter); 1] {
    let description = "The `ETag` of the answer that you have: if it still holds, the answer is a 304 without a body.";
    let example = "\"5f2d0c7be9a84413b6d1f0a2c3e4d5b6\"";
    [(IF_NONE_MATCH, parameter(ParameterIn::Header, IF_NONE_MATCH, description, &text(), example))]
}

/// A reference to a parameter of the components.
pub(super) fn reference(name: &str) -> Ref {
    Ref::new(format!("#/components/parameters/{name}"))
}

/// A path parameter; it is always required.
pub(super) fn path(name: &str, description: &str, schema: &Object, example: impl Into<Value>) -> Parameter {
    parameter(ParameterIn::Path, name, description, schema, example)
}

/// An optional query parameter.
pub(super) fn query(name: &str, description: &str, schema: &Object, example: impl Into<Value>) -> Parameter {
    parameter(ParameterIn::Query, name, description, schema, example)
}

/// A header that is always sent.
pub(super) fn header(name: &str, description: &str, schema: &Object, example: impl Into<Value>) -> Parameter {
    let header = parameter(ParameterIn::Header, name, description, schema, example);
    ParameterBuilder::from(header).required(Required::True).build()
}

/// `page` and `page_size`.
pub(super) fn paging() -> [Parameter; 2] {
    let page = ObjectBuilder::from(integer(1)).default(Some(json!(1))).build();
    let size = ObjectBuilder::from(integer(1))
        .maximum(Some(Paging::MAX_SIZE as isize))
        .default(Some(json!(Paging::DEFAULT_SIZE)))
        .build();
    [
        query(PAGE, "The page, counted from 1.", &page, 1),
        query(PAGE_SIZE, "Records per page.", &size, Paging::DEFAULT_SIZE),
    ]
}

/// Any text.
pub(super) fn text() -> Object {
    Object::with_type(Type::String)
}

/// Any text but the empty one.
pub(super) fn word() -> Object {
    ObjectBuilder::from(text()).min_length(Some(1)).build()
}

/// A hyphenated UUID in any case.
pub(super) fn uuid() -> Object {
    ObjectBuilder::from(text()).format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))).build()
}

/// An amount of US dollars.
pub(super) fn money() -> Object {
    matching(MONEY)
}

/// Text of a form.
pub(super) fn matching(pattern: &str) -> Object {
    ObjectBuilder::from(text()).pattern(Some(pattern)).build()
}

/// One of a closed list.
pub(super) fn one_of(values: &[&str]) -> Object {
    ObjectBuilder::from(text()).enum_values(Some(values.iter().copied())).build()
}

/// A 64-bit integer from `minimum` on.
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
        // In this order: the builder takes a parameter for one of the path, always required, until told otherwise.
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(ObjectBuilder::from(schema.clone()).examples([example.clone()])))
        .example(Some(example))
        .build()
}
