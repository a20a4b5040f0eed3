//! Completes the schema of a response with what no attribute of a field says, so that no field can be forgotten.

use serde_json::Value;
use types::include::ItemInclude;
use utoipa::openapi::schema::ArrayItems;
use utoipa::openapi::{Object, RefOr, Schema};

use super::schema_set::{Schemas, is_plain, named};

/// Completes a schema, and those that it refers to, from an example of the response.
///
/// Responses always have all their fields, with null for what is unknown, so every property is required, except those
/// that a response includes on request. Responses may gain fields, so unknown properties are accepted, even by the types
/// that refuse them when the feed is read. The example of each property is its value in the example of the response.
pub(super) fn complete(schemas: &mut Schemas, schema: &mut RefOr<Schema>, example: &Value) {
    match schema {
        RefOr::Ref(reference) => {
            // While it is completed, the schema is not in the map. So a record that contains itself ends here.
            if let Some((name, mut referred)) = schemas.remove_entry(named(reference)) {
                complete(schemas, &mut referred, example);
                schemas.insert(name, referred);
            }
        }
        RefOr::T(Schema::Object(object)) if is_plain(object) => illustrate(object, std::slice::from_ref(example)),
        RefOr::T(Schema::Object(object)) if !object.properties.is_empty() => {
            object.required = object.properties.keys().filter(|name| !is_on_request(name)).cloned().collect();
            object.additional_properties = None;
            for (name, field) in &mut object.properties {
                complete(schemas, field, &example[name.as_str()]);
            }
        }
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(|part| complete(schemas, part, example)),
        RefOr::T(Schema::OneOf(choice)) => {
            let references = choice.items.iter_mut().filter(|item| matches!(item, RefOr::Ref(_)));
            references.for_each(|reference| complete(schemas, reference, example));
        }
        RefOr::T(Schema::Array(array)) => {
            if let (ArrayItems::RefOrSchema(items), Value::Array(examples)) = (&mut array.items, example) {
                complete_items(schemas, items, examples);
            }
        }
        RefOr::T(_) => {}
    }
}

/// Returns whether a field is in a response only if the request includes it.
fn is_on_request(field: &str) -> bool {
    field.parse::<ItemInclude>().is_ok()
}

fn complete_items(schemas: &mut Schemas, items: &mut RefOr<Schema>, examples: &[Value]) {
    match items {
        RefOr::T(Schema::Object(object)) if is_plain(object) => illustrate(object, examples),
        _ => examples.iter().for_each(|example| complete(schemas, items, example)),
    }
}

/// Gives a plain value its examples, unless an attribute of the field did.
fn illustrate(object: &mut Object, examples: &[Value]) {
    if object.examples.is_empty() {
        object.examples = examples.to_vec();
    }
}
