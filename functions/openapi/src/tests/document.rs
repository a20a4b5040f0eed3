//! The document as a whole: its guide, its errors, its examples and its links.

use std::collections::BTreeSet;

use api::error::FieldCode;
use api::routes::{DESCRIPTION, ME, ROUTES};
use common::event::{CancelledBy, WithdrawalStatus};
use common::names::ClosedEnum;
use common::paging::{ItemInclude, Paging, Sort};
use common::records::{ListingKind, OrderSource};
use common::scope::{Scope, Tier};
use serde_json::{Map, Value, json};

use super::{description, errors, misfits, objects, operations, resolved};

#[test]
fn it_is_openapi_3_1_of_the_api_version_1() {
    let document = description();
    assert_eq!((&document["openapi"], &document["info"]["version"]), (&json!("3.1.0"), &json!("1.0.0")));
    // What holds only anchors is left out, and every anchor is put in its place.
    assert_eq!(document.get("x-anchors"), None);
    assert!(!crate::OPENAPI.contains("\"<<\""));
}

#[test]
fn the_paths_are_those_of_the_routes() {
    let document = description();
    let described: BTreeSet<_> = operations(&document).into_iter().map(|(path, _)| path).collect();
    assert_eq!(described, ROUTES.iter().map(|route| route.path).collect());
}

#[test]
fn the_guide_has_every_scope_tier_field_code_and_error() {
    let document = description();
    let text = document["info"]["description"].as_str().unwrap();
    let mut rows: Vec<String> = Scope::ALL.map(|scope| format!("| `{scope}` | ")).into();
    rows.extend(FieldCode::ALL.map(|code| format!("| `{code}` | ")));
    rows.extend(Tier::ALL.map(|tier| {
        let availability = if tier.is_coming_soon() { "coming soon" } else { "available" };
        format!("| `{tier}` | {} | {availability} |", tier.limit())
    }));
    rows.extend(errors().map(|error| {
        let (status, code) = (error.status().as_u16(), error.code());
        let params: Vec<_> = error.envelope().error.params.keys().map(|name| format!("`{name}`")).collect();
        format!("| {status} | `{code}` | {} | ", params.join(", "))
    }));
    for row in rows {
        assert!(text.contains(&format!("\n{row}")), "{row}");
    }
    assert!(text.contains(&format!("1 to {}, and {} unless", Paging::MAX_SIZE, Paging::DEFAULT_SIZE)));
}

#[test]
fn the_closed_lists_are_those_of_the_code() {
    fn names<T: ClosedEnum>() -> Value {
        T::MEMBERS.iter().map(|member| member.name()).collect()
    }
    let document = description();
    for (schema, expected) in [
        ("Scope", names::<Scope>()),
        ("Tier", names::<Tier>()),
        ("ListingKind", names::<ListingKind>()),
        ("OrderSource", names::<OrderSource>()),
        ("CancelledBy", names::<CancelledBy>()),
        ("WithdrawalStatus", names::<WithdrawalStatus>()),
        ("FieldCode", names::<FieldCode>()),
    ] {
        assert_eq!(document["components"]["schemas"][schema]["enum"], expected, "{schema}");
    }
    assert_eq!(parameter(&document, "/v1/public/items/{id}", "include")["enum"], names::<ItemInclude>());
    let sort = parameter(&document, "/v1/public/listings", "sort");
    assert_eq!((&sort["enum"], &sort["default"]), (&names::<Sort>(), &json!(Sort::DEFAULT)));
}

/// Returns the schema of a parameter.
fn parameter<'a>(document: &'a Value, path: &str, name: &str) -> &'a Value {
    let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
    &parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"]
}

#[test]
fn paging_has_its_bounds_and_defaults() {
    let document = description();
    for (path, record) in [("catalog", "PublicItem"), ("listings", "PublicListing"), ("orders", "PublicOrder")] {
        let path = format!("/v1/public/{path}");
        let page = parameter(&document, &path, "page");
        assert_eq!((&page["minimum"], &page["default"], page.get("maximum")), (&json!(1), &json!(1), None));
        let size = parameter(&document, &path, "page_size");
        let bounds = [1, Paging::MAX_SIZE, Paging::DEFAULT_SIZE].map(|bound| json!(bound));
        assert_eq!(["minimum", "maximum", "default"].map(|word| size[word].clone()), bounds);
        let fields = &document["components"]["schemas"][format!("Paged{record}")]["properties"];
        assert_eq!(fields["items"]["items"]["$ref"], format!("#/components/schemas/{record}"));
        assert_eq!(fields["page_size"]["maximum"], Paging::MAX_SIZE);
    }
}

#[test]
fn every_operation_can_end_as_the_design_says() {
    let document = description();
    for (path, operation) in operations(&document) {
        let mut expected = BTreeSet::from(["200", "304", "405"]);
        if path != DESCRIPTION.path {
            expected.extend(["400", "401", "429", "500", "503"]);
        }
        if operation.get("x-required-scope").is_some() {
            expected.insert("403");
        }
        if path.contains('{') {
            expected.insert("404");
        }
        let described = operation["responses"].as_object().unwrap().keys().map(String::as_str);
        assert_eq!(described.collect::<BTreeSet<_>>(), expected, "{path}");
    }
}

#[test]
fn the_scope_is_a_security_requirement() {
    let document = description();
    assert_eq!(document["components"]["securitySchemes"]["ApiKey"]["scheme"], "bearer");
    for (path, operation) in operations(&document) {
        let expected = match (path, operation.get("x-required-scope")) {
            (path, None) if path == DESCRIPTION.path => json!([]),
            (path, None) if path == ME.path => json!([{"ApiKey": []}]),
            (_, scope) => json!([{"ApiKey": [scope.unwrap()]}]),
        };
        assert_eq!(operation["security"], expected, "{path}");
    }
}

/// Returns each example in an object with the schema that it must fit. This is the object's `schema`, or the object
/// itself if it is a schema.
fn examples(object: &Map<String, Value>) -> Vec<(Value, &Value)> {
    let own = Value::Object(object.clone());
    let schema = object.get("schema").unwrap_or(&own);
    let one = object.get("example").filter(|_| object.contains_key("schema"));
    let all: Vec<&Value> = match object.get("examples") {
        Some(Value::Array(values)) => values.iter().collect(),
        Some(Value::Object(named)) => named.values().map(|example| &example["value"]).collect(),
        _ => Vec::new(),
    };
    one.into_iter().chain(all).map(|example| (schema.clone(), example)).collect()
}

#[test]
fn every_example_fits_its_schema() {
    let document = description();
    let mut checked = 0;
    objects(&document, "", &mut |at, object| {
        for (schema, example) in examples(object) {
            let misfits = misfits(&document, &schema, example);
            assert!(misfits.is_empty(), "{at}: {example}: {misfits:?}");
            checked += 1;
        }
    });
    assert!(checked > 150, "{checked}");
}

#[test]
fn errors_are_shown_under_their_own_status_and_code() {
    let document = description();
    let mut shown = BTreeSet::new();
    for (path, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolved(&document, response);
            let named = response.pointer("/content/application~1json/examples").and_then(Value::as_object);
            for (code, example) in named.into_iter().flatten() {
                let known = errors().into_iter().find(|error| error.code() == code).unwrap();
                assert_eq!(known.status().as_str(), *status, "{path} {code}");
                let (body, known) = (&example["value"]["error"], json!(known.envelope().error));
                assert_eq!(body["code"], *code, "{path}");
                let params = |body: &Value| body["params"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
                assert_eq!(params(body), params(&known), "{path} {code}");
                assert_eq!(body.get("fields").is_some(), known.get("fields").is_some(), "{path} {code}");
                shown.insert(code.as_str());
            }
        }
    }
    // No operation responds with the error of an unknown path, or of another host.
    let missing = errors().map(|error| error.code()).into_iter().filter(|code| !shown.contains(code));
    assert_eq!(missing.collect::<Vec<_>>(), ["routes.not_found", "hosts.not_allowed"]);
}

/// Each link, followed with the example of the response that has it, fills a parameter that takes the value.
#[test]
fn each_link_leads_to_a_parameter_that_takes_its_value() {
    let document = description();
    let operations = operations(&document);
    let mut followed = 0;
    for (path, operation) in &operations {
        let ok = &operation["responses"]["200"];
        let example = &ok["content"]["application/json"]["example"];
        for (name, link) in ok["links"].as_object().into_iter().flatten() {
            let target = operations.iter().find(|(_, target)| target["operationId"] == link["operationId"]);
            let (target, _) = target.unwrap_or_else(|| panic!("{path} {name}: no such operation"));
            for (taken, expression) in link["parameters"].as_object().unwrap() {
                let pointer = expression.as_str().and_then(|text| text.strip_prefix("$response.body#")).unwrap();
                let value = example.pointer(pointer).unwrap_or(&Value::Null);
                let schema = parameter(&document, target, taken);
                assert_eq!(misfits(&document, schema, value), Vec::<String>::new(), "{path} {name}");
                followed += 1;
            }
        }
    }
    assert_eq!(followed, 3);
}
