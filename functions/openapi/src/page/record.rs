//! Renders the section of a record: a table of its fields.

use maud::{Markup, html};
use utoipa::openapi::{Components, Object, RefOr, Schema};

use super::elements::table;
use super::{kind, prose};

pub(super) fn render(components: &Components, name: &str, schema: &RefOr<Schema>) -> Markup {
    html! {
        section.record id=(kind::anchor(name)) {
            h3 { code { (name) } }
            (content(components, schema))
        }
    }
}

fn content(components: &Components, schema: &RefOr<Schema>) -> Markup {
    match schema {
        RefOr::T(Schema::Object(object)) if object.properties.is_empty() => html! {
            p { (kind::render(schema)) }
            (described(object.description.as_deref()))
        },
        RefOr::T(Schema::Object(object)) => html! {
            (described(object.description.as_deref()))
            (fields(&[object]))
        },
        RefOr::T(Schema::AllOf(all)) => {
            let parts: Vec<_> = all.items.iter().filter_map(|part| object(components, part)).collect();
            html! {
                (described(all.description.as_deref()))
                (fields(&parts))
            }
        }
        _ => Markup::default(),
    }
}

/// Renders a table with the fields of one or more objects that form a record.
pub(super) fn fields(objects: &[&Object]) -> Markup {
    let rows = html! {
        @for object in objects {
            @for (name, schema) in &object.properties {
                (field(name, schema, object.required.contains(name)))
            }
        }
    };
    table(&["Field", "Type", "Meaning"], &rows)
}

/// Returns the object that a schema is or refers to.
pub(super) fn object<'a>(components: &'a Components, schema: &'a RefOr<Schema>) -> Option<&'a Object> {
    match schema {
        RefOr::T(Schema::Object(object)) => Some(object),
        RefOr::Ref(reference) => object(components, components.schemas.get(kind::named(reference))?),
        RefOr::T(_) => None,
    }
}

fn field(name: &str, schema: &RefOr<Schema>, always: bool) -> Markup {
    html! {
        tr {
            td { code { (name) } }
            td { (kind::render(schema)) }
            td {
                (prose::inline(description(schema)))
                @if !always { " May be absent." }
            }
        }
    }
}

fn described(description: Option<&str>) -> Markup {
    prose::blocks(description.unwrap_or_default())
}

pub(super) fn description(schema: &RefOr<Schema>) -> &str {
    let description = match schema {
        RefOr::Ref(reference) => return &reference.description,
        RefOr::T(Schema::Object(object)) => &object.description,
        RefOr::T(Schema::Array(array)) => &array.description,
        // The text stands beside the reference, and null has none.
        RefOr::T(Schema::OneOf(choice)) => {
            return choice.items.iter().map(description).find(|text| !text.is_empty()).unwrap_or_default();
        }
        RefOr::T(_) => &None,
    };
    description.as_deref().unwrap_or_default()
}
