//! Writes the section of a record: a table of its fields.

use utoipa::openapi::{Components, Object, RefOr, Schema};

use super::html::Html;
use super::{kind, prose};

pub(super) fn write(html: &mut Html, components: &Components, name: &str, schema: &RefOr<Schema>) {
    let anchor = kind::anchor(name);
    html.element("section", &[("id", &anchor), ("class", "record")], |html| {
        html.element("h3", &[], |html| html.leaf("code", name));
        match schema {
            RefOr::T(Schema::Object(object)) if object.properties.is_empty() => {
                html.element("p", &[], |html| kind::write(html, schema));
                described(html, object.description.as_deref());
            }
            RefOr::T(Schema::Object(object)) => {
                described(html, object.description.as_deref());
                fields(html, &[object]);
            }
            RefOr::T(Schema::AllOf(all)) => {
                described(html, all.description.as_deref());
                fields(html, &all.items.iter().filter_map(|part| object(components, part)).collect::<Vec<_>>());
            }
            _ => {}
        }
    });
}

/// Writes a table with the fields of one or more objects that form a record.
pub(super) fn fields(html: &mut Html, objects: &[&Object]) {
    html.table(&["Field", "Type", "Meaning"], |html| {
        for object in objects {
            for (name, schema) in &object.properties {
                let always = object.required.contains(name);
                field(html, name, schema, always);
            }
        }
    });
}

/// Returns the object that a schema is or refers to.
pub(super) fn object<'a>(components: &'a Components, schema: &'a RefOr<Schema>) -> Option<&'a Object> {
    match schema {
        RefOr::T(Schema::Object(object)) => Some(object),
        RefOr::Ref(reference) => object(components, components.schemas.get(kind::named(reference))?),
        RefOr::T(_) => None,
    }
}

fn field(html: &mut Html, name: &str, schema: &RefOr<Schema>, always: bool) {
    html.element("tr", &[], |html| {
        html.element("td", &[], |html| html.leaf("code", name));
        html.element("td", &[], |html| kind::write(html, schema));
        html.element("td", &[], |html| {
            prose::inline(html, description(schema));
            if !always {
                html.raw(" May be absent.");
            }
        });
    });
}

fn described(html: &mut Html, description: Option<&str>) {
    html.element("p", &[], |html| prose::inline(html, description.unwrap_or_default()));
}

fn description(schema: &RefOr<Schema>) -> &str {
    let description = match schema {
        RefOr::Ref(reference) => return &reference.description,
        RefOr::T(Schema::Object(object)) => &object.description,
        RefOr::T(Schema::Array(array)) => &array.description,
        RefOr::T(_) => &None,
    };
    description.as_deref().unwrap_or_default()
}
