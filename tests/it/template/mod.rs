//! `template.yaml` against the project's own definition of what it deploys.

mod functions;
mod monitoring;
mod queues;
mod routes;
mod tables;
mod triggers;

use std::collections::BTreeMap;

use platform::resources::Resources;
use serde_json::{Map, Value};
use tests::Template;

/// The names of the stack that the template is read for.
fn names() -> Resources {
    Resources::of(Resources::DEFAULT_STACK)
}

/// The resources of a type with their properties, by their names in AWS.
fn deployed(kind: &str, name: &str) -> BTreeMap<String, Map<String, Value>> {
    let resources = Template::read().resources(kind).into_values();
    let properties = resources.map(|resource| resource["Properties"].as_object().unwrap().clone());
    properties.map(|properties| (properties[name].as_str().unwrap().to_owned(), properties)).collect()
}

/// Compares property by property.
fn assert_same(name: &str, mut deployed: Map<String, Value>, expected: Value) {
    let Value::Object(mut expected) = expected else { panic!("no properties: {expected}") };
    let properties: Vec<String> = deployed.keys().chain(expected.keys()).cloned().collect();
    for property in properties {
        assert_eq!(deployed.remove(&property), expected.remove(&property), "{property} of {name}");
    }
}
