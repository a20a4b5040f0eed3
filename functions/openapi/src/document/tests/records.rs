//! The schemas of the responses say everything about every field.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use types::records::PublicVariant;
use types::schema::Example;

use super::{document, operations};

/// Adds the names of the schemas that a value refers to, directly or through other schemas.
fn referred(document: &Value, value: &Value, names: &mut BTreeSet<String>) {
    super::objects(value, "", &mut |_, object| {
        let name = object.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix("#/components/schemas/"));
        if let Some(name) = name
            && names.insert(name.to_owned())
        {
            referred(document, &document["components"]["schemas"][name], names);
        }
    });
}

/// Returns the schema of every record in a response, by name.
fn records(document: &Value) -> Vec<(String, &Value)> {
    let mut names = BTreeSet::new();
    for (_, operation) in operations(document) {
        referred(document, &operation["responses"]["200"]["content"]["application/json"]["schema"], &mut names);
    }
    names.into_iter().map(|name| (name.clone(), &document["components"]["schemas"][name])).collect()
}

/// The fields that a response has only if the request includes them.
const ON_REQUEST: [(&str, &str); 1] = [("PublicVariant", "prices")];

#[test]
fn every_field_of_a_response_is_required_and_every_plain_one_has_an_example() {
    let document = document();
    let mut checked = 0;
    for (name, schema) in records(&document) {
        super::objects(schema, &name, &mut |at, object| {
            let Some(fields) = object.get("properties").and_then(Value::as_object) else { return };
            let always = |field: &&str| !ON_REQUEST.contains(&(name.as_str(), *field));
            let names: BTreeSet<_> = fields.keys().map(String::as_str).filter(always).collect();
            let required: BTreeSet<_> =
                object["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(required, names, "{at}");
            assert!(!object.contains_key("additionalProperties"), "{at}");
            for (field, schema) in fields {
                let schema = schema.get("items").unwrap_or(schema);
                let is_described = ["$ref", "oneOf", "examples"].iter().any(|part| schema.get(part).is_some());
                assert!(is_described, "{at}: {field}");
                checked += 1;
            }
        });
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn the_prices_of_a_variant_may_be_absent_or_null() {
    let document = document();
    let fits = |variant: Value| {
        let schema = json!({"$ref": "#/components/schemas/PublicVariant"});
        super::misfits(&document, &schema, &variant).is_empty()
    };
    let mut variant = json!(PublicVariant::example());
    assert!(fits(variant.clone()));
    variant["prices"]["lowest_usd"] = json!(11.9);
    assert!(!fits(variant.clone()));
    variant["prices"] = Value::Null;
    assert!(fits(variant.clone()));
    variant.as_object_mut().unwrap().remove("prices");
    assert!(fits(variant));
}

#[test]
fn no_plain_value_has_a_component() {
    let document = document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let is_named = ["properties", "allOf", "enum"].iter().any(|part| schema.get(part).is_some());
        assert!(is_named, "{name}: {schema}");
    }
}
