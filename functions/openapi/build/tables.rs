//! The tables of the docs page, in Markdown: parameters, responses, and the fields of records.

use std::collections::BTreeMap;

use yaml_serde::Value;

use super::document::{Document, content, list, members, plain, text, values};

/// The headers that the guide explains for all operations, so no operation's tables repeat them.
const COMMON: [&str; 11] = [
    "Cache-Control",
    "Content-Encoding",
    "ETag",
    "If-None-Match",
    "RateLimit",
    "RateLimit-Policy",
    "Vary",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Request-Id",
];

/// How a table names a record: as a link, for example.
pub(crate) type NameRecord<'a> = &'a dyn Fn(&str) -> String;

/// Returns a table of the parameters that the guide does not explain, or nothing if there are none.
pub(crate) fn parameters(parameters: &[&Value], name: NameRecord<'_>) -> String {
    let mut own = parameters.iter().filter(|parameter| !COMMON.contains(&text(parameter, "name"))).peekable();
    if own.peek().is_none() {
        return String::new();
    }
    let rows = own.map(|parameter| {
        let required = if parameter["required"] == true { ", required" } else { "" };
        [
            code(text(parameter, "name")),
            format!("{}{required}", text(parameter, "in")),
            kind(&parameter["schema"], name),
            text(parameter, "description").to_owned(),
            code(&plain(&parameter["example"])),
        ]
    });
    table(["Name", "In", "Type", "Meaning", "Example"], rows)
}

/// Returns a table of the operations, each with a link to its section.
pub(crate) fn operations(document: &Document, link: &dyn Fn(&Value) -> String) -> String {
    let rows = document.operations().map(|(path, operation)| {
        let scope = match (operation["x-required-scope"].as_str(), list(&operation["security"]).next()) {
            (Some(scope), _) => code(scope),
            (None, Some(_)) => "any valid key".to_owned(),
            (None, None) => "no key".to_owned(),
        };
        [code(&format!("GET {path}")), format!("[{}]({})", text(operation, "summary"), link(operation)), scope]
    });
    table(["Endpoint", "What it returns", "Needs"], rows)
}

/// Returns a table of an operation's own responses, with the headers that the guide does not explain.
pub(crate) fn responses(document: &Document, operation: &Value, name: NameRecord<'_>) -> String {
    let own = |status: &str| operation["responses"][status]["$ref"].is_null();
    let responses = document.responses(operation).into_iter();
    response_table(responses.filter(|(status, _)| own(status)), name)
}

/// Returns a table of the responses that many operations have.
pub(crate) fn common_responses(document: &Document, name: NameRecord<'_>) -> String {
    let mut common = BTreeMap::new();
    for (_, operation) in document.operations() {
        let all = document.responses(operation).into_iter();
        common.extend(all.filter(|(status, _)| !operation["responses"][*status]["$ref"].is_null()));
    }
    response_table(common.into_iter(), name)
}

fn response_table<'a>(responses: impl Iterator<Item = (&'a str, &'a Value)>, name: NameRecord<'_>) -> String {
    let rows = responses.map(|(status, response)| {
        let schema = &content(response)["schema"];
        let body = if schema.is_null() { String::new() } else { kind(schema, name) };
        let mut headers: Vec<&str> = members(&response["headers"]).map(|(header, _)| header).collect();
        headers.retain(|header| !COMMON.contains(header));
        headers.sort_unstable();
        [status.to_owned(), text(response, "description").to_owned(), body, headers.join(", ")]
    });
    table(["Status", "Meaning", "Body", "Headers"], rows)
}

/// Returns the table of a record's fields, or the kind of a record that has none.
pub(crate) fn record(document: &Document, schema: &Value, name: NameRecord<'_>) -> String {
    let parts: Vec<&Value> = list(&schema["allOf"]).map(|part| document.followed(part)).collect();
    match (parts.is_empty(), schema["properties"].is_null()) {
        (false, _) => fields(&parts, "", name),
        (true, false) => fields(&[schema], "", name),
        (true, true) => kind(schema, name) + "\n",
    }
}

/// Returns the table of the fields of an event's data.
pub(crate) fn data(document: &Document, delivery: &Value, name: NameRecord<'_>) -> String {
    let envelope = document.followed(&content(&delivery["requestBody"])["schema"]);
    fields(&[document.followed(&envelope["properties"]["data"])], " May be absent.", name)
}

/// Returns a table of fields. `optional` is said of those that are not required. Responses have these nevertheless.
fn fields(objects: &[&Value], optional: &str, name: NameRecord<'_>) -> String {
    let all = objects
        .iter()
        .flat_map(|object| members(&object["properties"]).map(|(field, schema)| (*object, field, schema)));
    let rows = all.map(|(object, field, schema)| {
        let absent = if list(&object["required"]).any(|required| required == field) { "" } else { optional };
        // Of what may be null, the text stands beside the reference.
        let described = list(&schema["oneOf"]).next().unwrap_or(schema);
        [code(field), kind(schema, name), format!("{}{absent}", text(described, "description"))]
    });
    table(["Field", "Type", "Meaning"], rows)
}

/// Returns which values a schema accepts, in words. A regular expression is left to programs: the description beside it
/// says the same.
fn kind(schema: &Value, name: NameRecord<'_>) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return name(reference.rsplit('/').next().unwrap_or_default());
    }
    let words = |schemas: &Value| list(schemas).map(|schema| kind(schema, name)).collect::<Vec<_>>().join(" or ");
    let values: Vec<String> = values(schema).into_iter().map(|value| code(&plain(value))).collect();
    let parts = [
        list(&schema["type"]).map(plain).collect::<Vec<_>>().join(" or "),
        text(schema, "type").to_owned(),
        words(&schema["oneOf"]),
        if schema["items"].is_null() { String::new() } else { format!(" of {}", kind(&schema["items"], name)) },
        if schema["format"].is_null() { String::new() } else { format!(" ({})", text(schema, "format")) },
        match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(low), Some(high)) => format!(", {low} to {high}"),
            (Some(low), None) => format!(", {low} or more"),
            (None, _) => String::new(),
        },
        if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) },
        if schema["default"].is_null() {
            String::new()
        } else {
            format!(", default {}", code(&plain(&schema["default"])))
        },
    ];
    parts.concat()
}

/// Returns a table. Texts of several lines become one line.
fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let row = |cells: [String; N]| {
        let cells = cells.map(|cell| cell.trim().replace('\n', " ").replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
    };
    let head = [headings.map(str::to_owned), [(); N].map(|()| "---".to_owned())];
    head.into_iter().chain(rows).map(row).collect()
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
