//! Puts the schemas of plain values, such as ids and amounts, where they are used.
//!
//! The derived schemas refer to every type by its name. With a component for each kind of id, generated clients would
//! have a type for each.

use utoipa::openapi::schema::{ArrayItems, SchemaType};
use utoipa::openapi::{Object, RefOr, Schema, Type};

use super::schema_set::{Schemas, is_plain, named};

/// Replaces every reference to a plain value by its schema, and removes the components of plain values.
pub(super) fn inline(schemas: &mut Schemas) {
    let all = std::mem::take(schemas).into_iter();
    let (plain, others): (Schemas, Schemas) =
        all.partition(|(_, schema)| matches!(schema, RefOr::T(Schema::Object(object)) if is_plain(object)));
    *schemas = others;
    for schema in schemas.values_mut() {
        replace(schema, &plain);
    }
}

fn replace(schema: &mut RefOr<Schema>, plain: &Schemas) {
    if let Some(value) = plain_value(schema, plain) {
        *schema = value.into();
        return;
    }
    match schema {
        RefOr::T(Schema::Object(object)) => object.properties.values_mut().for_each(|field| replace(field, plain)),
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(|part| replace(part, plain)),
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                replace(items, plain);
            }
        }
        RefOr::T(_) | RefOr::Ref(_) => {}
    }
}

/// Returns the schema to put in place of a reference to a plain value, or of the choice between it and null.
fn plain_value(schema: &RefOr<Schema>, plain: &Schemas) -> Option<Object> {
    match schema {
        RefOr::Ref(reference) => {
            let RefOr::T(Schema::Object(object)) = plain.get(named(reference))? else { return None };
            let mut object = object.clone();
            object.description = Some(reference.description.clone()).filter(|text| !text.is_empty());
            Some(object)
        }
        RefOr::T(Schema::OneOf(choice)) => {
            let mut object = choice.items.iter().find_map(|item| plain_value(item, plain))?;
            if let SchemaType::Type(kind) = &object.schema_type {
                object.schema_type = SchemaType::from_iter([kind.clone(), Type::Null]);
            }
            Some(object)
        }
        RefOr::T(_) => None,
    }
}
