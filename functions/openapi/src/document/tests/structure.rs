use std::collections::BTreeSet;

use api::routes::{DESCRIPTION, ME, ROUTES};
use serde_json::{Value, json};

use super::{document, objects, operations, resolved};

#[test]
fn it_is_openapi_3_1_of_the_api_version_1() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "1.1.0");
    assert_eq!(document["info"]["license"]["identifier"], "MIT OR Apache-2.0");
}

#[test]
fn each_instance_makes_the_same_bytes() {
    let bytes = || super::super::openapi().to_json().unwrap();
    assert_eq!(bytes(), bytes());
}

#[test]
fn the_paths_are_those_of_the_routes() {
    let told: Vec<_> = super::super::openapi().paths.paths.into_keys().collect();
    assert_eq!(told, ROUTES.map(|route| route.path));
}

#[test]
fn every_reference_resolves() {
    let document = document();
    let mut references = 0;
    objects(&document, "", &mut |at, object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{at}: {reference}");
            references += 1;
        }
    });
    assert!(references > 100, "{references}");
}

#[test]
fn every_component_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    objects(&document, "", &mut |_, object| {
        used.extend(object.get("$ref").and_then(Value::as_str));
    });
    for kind in ["schemas", "responses", "headers", "parameters"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            assert!(used.contains(format!("#/components/{kind}/{name}").as_str()), "{kind} {name}");
        }
    }
}

#[test]
fn every_operation_is_told_in_full() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (path, operation) in operations(&document) {
        for field in ["operationId", "summary", "description"] {
            assert!(operation[field].as_str().is_some_and(|text| !text.is_empty()), "{path}: {field}");
        }
        assert!(ids.insert(operation["operationId"].to_string()), "{path}");
        let tags = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]);
        assert!(tags.into_iter().any(|tag| *tag == operation["tags"][0]), "{path}");
        for parameter in operation["parameters"].as_array().unwrap() {
            let parameter = resolved(&document, parameter);
            assert_eq!(parameter["required"], parameter["in"] == "path", "{path}: {parameter}");
            for field in ["name", "in", "description", "schema", "example"] {
                assert!(parameter.get(field).is_some(), "{path}: {parameter}");
            }
        }
    }
}

#[test]
fn every_operation_can_end_as_the_design_says() {
    let document = document();
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
        let told = operation["responses"].as_object().unwrap().keys().map(String::as_str);
        assert_eq!(told.collect::<BTreeSet<_>>(), expected, "{path}");
    }
}

#[test]
fn the_scope_is_a_security_requirement() {
    let document = document();
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

#[test]
fn pages_name_their_records() {
    let document = document();
    for record in ["PublicItem", "PublicListing", "PublicOrder"] {
        let items = &document["components"]["schemas"][format!("Paged{record}")]["properties"]["items"];
        assert_eq!(items["items"]["$ref"], format!("#/components/schemas/{record}"));
    }
}

#[test]
fn paging_and_sort_have_their_bounds_and_defaults() {
    let document = document();
    let schema = |path: &str, name: &str| {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"].clone()
    };
    for path in ["/v1/public/catalog", "/v1/public/listings", "/v1/public/orders"] {
        let page = json!({"type": "integer", "format": "int64", "default": 1, "examples": [1], "minimum": 1});
        assert_eq!(schema(path, "page"), page);
        let size = json!({
            "type": "integer", "format": "int64", "default": 50, "examples": [50], "maximum": 100, "minimum": 1
        });
        assert_eq!(schema(path, "page_size"), size);
    }
    let sort = schema("/v1/public/listings", "sort");
    assert_eq!((&sort["default"], &sort["enum"]), (&json!("newest"), &json!(["newest", "price_asc", "price_desc"])));
}
