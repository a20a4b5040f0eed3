//! The errors that a program can know. `x-errors` and `x-field-errors` of the document list them. From there the guide
//! has a table of each list, and the schema of an error the codes.

use yaml_serde::Value;

use super::document::{list, members, plain, text};

/// Puts a table in place of the name of each list in the guide, and the known codes into their schema.
pub(crate) fn spread(root: &mut Value) {
    let mut guide = text(&root["info"], "description").to_owned();
    for name in ["x-errors", "x-field-errors"] {
        guide = guide.replace(&format!("{{{name}}}"), table(&root[name]).trim_end());
    }
    let codes = members(&root["x-errors"]).map(|(code, _)| Value::from(code)).collect();
    root["info"]["description"] = Value::from(guide);
    root["components"]["schemas"]["ErrorBody"]["properties"]["code"]["x-extensible-enum"] = Value::Sequence(codes);
}

/// Returns a table of errors, in Markdown. Only some lists have a status.
fn table(errors: &Value) -> String {
    let has_status = members(errors).any(|(_, error)| !error["status"].is_null());
    let (heading, rule) = if has_status { ("| Status ", "|---") } else { ("", "") };
    let rows = members(errors).map(|(code, error)| {
        let status = if has_status { format!("| {} ", plain(&error["status"])) } else { String::new() };
        format!("{status}| `{code}` | {} | {} |\n", params(&error["params"]), messages(error))
    });
    format!("{heading}| Code | Params | Message |\n{rule}|---|---|---|\n{}", rows.collect::<String>())
}

fn params(schema: &Value) -> String {
    let is_required = |name: &str| list(&schema["required"]).any(|required| required == name);
    let names = members(&schema["properties"]).map(|(name, _)| {
        let optional = if is_required(name) { "" } else { " (may be absent)" };
        format!("`{name}`{optional}")
    });
    names.collect::<Vec<_>>().join(", ")
}

fn messages(error: &Value) -> String {
    list(&error["messages"]).map(plain).collect::<Vec<_>>().join(" Or: ")
}
