use serde_json::Value;

use super::super::operation::responses;
use super::super::parameters;
use super::super::webhook::{body, data};
use super::*;
use crate::document;

/// Collects the names of parameters, fields, schemas, paths and events, and the codes of the examples.
fn names(node: &Value, found: &mut Vec<String>) {
    match node {
        Value::Object(fields) => {
            for (key, value) in fields {
                if ["properties", "schemas", "paths", "webhooks"].contains(&key.as_str()) {
                    found.extend(value.as_object().into_iter().flat_map(|named| named.keys().cloned()));
                }
                if key == "name" || key == "code" {
                    found.extend(value.as_str().map(str::to_owned));
                }
                names(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn everything_that_the_document_names_is_there() {
    let openapi = document::openapi();
    let text = render(&openapi);
    let mut found = Vec::new();
    names(&serde_json::to_value(&openapi).unwrap(), &mut found);
    // What names the document itself, and not what clients use.
    let outside = [openapi.info.license.unwrap().name, openapi.info.contact.unwrap().name.unwrap()];
    let tags = openapi.tags.unwrap();
    let is_used = |name: &String| !outside.contains(name) && tags.iter().all(|tag| tag.name != *name);
    let missing: Vec<_> = found.into_iter().filter(is_used).filter(|name| !text.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns the section with this heading.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n### {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n##").next().unwrap()
}

#[track_caller]
fn assert_has_rows(text: &str, heading: &str, first_cells: impl IntoIterator<Item = String>) {
    let section = section(text, heading);
    for cell in first_cells {
        assert!(section.contains(&format!("\n| {cell} | ")), "{heading}: {cell}");
    }
}

#[test]
fn the_section_of_an_operation_has_its_call_its_parameters_and_its_responses() {
    let openapi = document::openapi();
    let (text, components) = (render(&openapi), openapi.components.as_ref().unwrap());
    for (path, get) in operations(&openapi) {
        let heading = get.summary.as_deref().unwrap();
        assert!(section(&text, heading).contains(&format!("\n`GET {path}`\n")), "{path}");
        assert!(section(&text, heading).contains("\n```sh\ncurl --compressed "), "{path}");
        assert_has_rows(&text, heading, parameters::all(components, get).iter().map(|one| format!("`{}`", one.name)));
        assert_has_rows(&text, heading, responses(components, get).iter().map(|(status, _)| (*status).to_owned()));
    }
}

#[test]
fn the_section_of_a_record_or_an_event_has_its_fields() {
    let openapi = document::openapi();
    let (text, components) = (render(&openapi), openapi.components.as_ref().unwrap());
    for (name, schema) in &components.schemas {
        let schema = serde_json::to_value(schema).unwrap();
        let fields = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
        assert_has_rows(&text, name, fields.map(|field| format!("`{field}`")));
    }
    for (name, delivery) in webhooks(&openapi) {
        let data = data(components, body(delivery).unwrap()).unwrap();
        assert_has_rows(&text, name, data.properties.keys().map(|field| format!("`{field}`")));
    }
}

#[test]
fn tables_have_the_same_number_of_cells_in_each_row() {
    let text = render(&document::openapi());
    let cells = |row: &str| row.replace("\\|", "").matches('|').count();
    let mut width = None;
    for line in text.lines() {
        match (line.starts_with("| "), width) {
            (true, Some(width)) => assert_eq!(cells(line), width, "{line}"),
            (true, None) => width = Some(cells(line)),
            (false, _) => width = None,
        }
    }
}
