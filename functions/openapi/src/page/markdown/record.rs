//! The section of a record: a table of its fields.

use utoipa::openapi::{Components, Object, RefOr, Schema};

use super::super::record::{description, object};
use super::kind;
use super::table::{code, table};

pub(super) fn section(components: &Components, name: &str, schema: &RefOr<Schema>) -> String {
    let (about, parts) = match schema {
        RefOr::T(Schema::AllOf(all)) => {
            (all.description.as_deref(), all.items.iter().filter_map(|part| object(components, part)).collect())
        }
        RefOr::T(Schema::Object(object)) => (object.description.as_deref(), vec![object]),
        _ => (None, Vec::new()),
    };
    let content = match schema {
        RefOr::T(Schema::Object(object)) if object.properties.is_empty() => format!("{}\n", kind::words(schema)),
        _ => fields(&parts),
    };
    format!("\n### {name}\n\n{}\n\n{content}", about.unwrap_or_default()).replace("\n\n\n\n", "\n\n")
}

/// Returns a table with the fields of one or more objects that form a record.
pub(super) fn fields(objects: &[&Object]) -> String {
    let all = objects.iter().flat_map(|object| object.properties.iter().map(|(name, schema)| (*object, name, schema)));
    let rows = all.map(|(object, name, schema)| {
        let absent = if object.required.contains(name) { "" } else { " May be absent." };
        [code(name), kind::words(schema), format!("{}{absent}", description(schema))]
    });
    table(["Field", "Type", "Meaning"], rows)
}
