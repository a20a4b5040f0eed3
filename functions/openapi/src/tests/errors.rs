//! The lists of errors have every code, a schema that each error's `params` fit, and messages that they fill.

use std::collections::BTreeSet;

use api::error::{ApiError, FieldCode, FieldError};
use api::params;
use changes::After;
use listings::ListingsInput;
use serde_json::{Value, json};

use super::{description, errors, misfits};

/// Fills the first message whose placeholders all have a value.
fn filled(error: &Value, params: &Value) -> Option<String> {
    let fill = |message: &Value| {
        let mut text = message.as_str().unwrap().to_owned();
        for (name, value) in params.as_object().unwrap() {
            let shown = match value {
                Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
                value => shown(value),
            };
            text = text.replace(&format!("{{{name}}}"), &shown);
        }
        (!text.contains('{')).then_some(text)
    };
    error["messages"].as_array().unwrap().iter().find_map(fill)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn codes<'a>(document: &'a Value, list: &str) -> BTreeSet<&'a str> {
    document[list].as_object().unwrap().keys().map(String::as_str).collect()
}

/// Checks that `params` fit the schema, have nothing that it does not name, and fill a message. Returns that.
fn check(document: &Value, error: &Value, params: &Value) -> String {
    assert_eq!(misfits(document, &error["params"], params), [""; 0], "{params}");
    let named = error["params"]["properties"].as_object().cloned().unwrap_or_default();
    assert!(params.as_object().unwrap().keys().all(|name| named.contains_key(name)), "{params}");
    filled(error, params).unwrap_or_else(|| panic!("{params} fill no message of {error}"))
}

#[test]
fn every_error_fits_its_schema_and_fills_its_message() {
    let document = description();
    let known: BTreeSet<_> = errors().iter().map(ApiError::code).collect();
    assert_eq!(codes(&document, "x-errors"), known);
    let open = &document["components"]["schemas"]["ErrorBody"]["properties"]["code"];
    assert_eq!((&open["type"], open.get("enum")), (&json!("string"), None));
    let listed: BTreeSet<_> =
        open["x-extensible-enum"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
    assert_eq!(listed, known);
    for error in errors() {
        let entry = &document["x-errors"][error.code()];
        assert_eq!(entry["status"], error.status().as_u16(), "{}", error.code());
        check(&document, entry, &Value::Object(error.envelope().error.params));
    }
}

/// Returns what is wrong with the query of a request for listings.
fn problems(query: &str) -> Vec<FieldError> {
    params::parse::<ListingsInput>(&[], query).unwrap_err()
}

#[test]
fn every_bad_parameter_fits_its_schema_and_fills_its_message() {
    let document = description();
    let mut seen = BTreeSet::new();
    for (query, message) in [
        ("page=1.0", "It must be a whole number, such as 2."),
        ("min_price=1,50", "It must be a decimal number with at most two decimals, such as 12.50."),
        ("variant_id=x", "It must be a UUID with hyphens, such as 302e3e41-4703-51e3-9cc2-e551bdcec11e."),
        ("sort=", "It must be one of: newest, price_asc, price_desc."),
        ("item_id=%ff", "It must be text in UTF-8, escaped as %XX."),
        ("page=0", "It must be from 1 to 9223372036854775807."),
        ("page_size=101", "It must be from 1 to 100."),
        ("min_price=-1", "It must be from 0.00 to 999999999999.99."),
        ("max_price=9999999999999", "It must be from 0.00 to 999999999999.99."),
        ("sort=up", "It must be one of: newest, price_asc, price_desc."),
        ("pagesize=1", "There is no such parameter. Is page_size meant?"),
        ("limit=1", "There is no such parameter. Is page_size meant?"),
        ("cursor=1", "There is no such parameter. Is page meant?"),
        ("utm_source=1", "There is no such parameter."),
        ("page=1&page=2", "It is given more than once."),
        ("min_price=2&max_price=1", "The minimum is above the maximum."),
    ] {
        let [problem] = &problems(query)[..] else { panic!("{query}") };
        let entry = &document["x-field-errors"][problem.code.as_str()];
        assert_eq!(check(&document, entry, &Value::Object(problem.params.clone())), message, "{query}");
        seen.insert(problem.code.as_str());
    }
    let Some(FieldError { field, code, params }) = params::parse::<After>(&[], "").unwrap_err().pop() else { panic!() };
    let message = check(&document, &document["x-field-errors"][code.as_str()], &Value::Object(params));
    assert!(field == "after" && message.starts_with("It is needed: a position from X-Log-Position"), "{message}");
    seen.insert(code.as_str());
    let too_many = item::too_many(40);
    let message = check(&document, &document["x-field-errors"]["too_many"], &Value::Object(too_many.params));
    assert_eq!(message, "It includes at most 25, and there are 40. Ask for each of them alone.");
    seen.insert(too_many.code.as_str());
    assert_eq!(codes(&document, "x-field-errors"), seen);
    assert_eq!(seen, FieldCode::ALL.map(FieldCode::as_str).into());
}
