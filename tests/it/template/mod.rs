//! Compares `template.yaml` and `infra/data/template.yaml` with the project's own definition of what is deployed.

mod data;
mod edge;
mod functions;
mod monitoring;
mod rollouts;

use std::collections::BTreeMap;

use common::resources::Resources;
use serde_json::{Map, Value};
use tests::Template;

/// The resource names of the stack for which the template is read.
fn names() -> Resources {
    Resources::new(Resources::DEFAULT_STACK)
}

/// Returns the properties of all resources of a type, by their names in AWS.
fn deployed(kind: &str, name: &str) -> BTreeMap<String, Map<String, Value>> {
    let resources = Template::read().resources(kind).into_values();
    let properties = resources.map(|resource| resource["Properties"].as_object().unwrap().clone());
    properties.map(|properties| (properties[name].as_str().unwrap().to_owned(), properties)).collect()
}

/// Asserts that a resource has exactly the expected properties. Compares them one by one, so that a failure names the
/// property.
fn assert_same(name: &str, mut deployed: Map<String, Value>, expected: Value) {
    let Value::Object(mut expected) = expected else { panic!("no properties: {expected}") };
    let properties: Vec<String> = deployed.keys().chain(expected.keys()).cloned().collect();
    for property in properties {
        assert_eq!(deployed.remove(&property), expected.remove(&property), "{property} of {name}");
    }
}
