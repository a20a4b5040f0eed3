//! Reads the template's YAML, with the short forms of `CloudFormation`'s functions turned into the long ones.

use serde_json::{Map, Value, json};
use yaml_serde::Value as Yaml;

/// Parses the document into JSON, with `!Sub x` as `{"Fn::Sub": "x"}`.
pub(super) fn parse(text: &str) -> Value {
    long(yaml_serde::from_str(text).unwrap())
}

fn long(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Sequence(values) => values.into_iter().map(long).collect(),
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter().map(|(name, value)| (name.as_str().unwrap().to_owned(), long(value)));
            Value::Object(entries.collect())
        }
        Yaml::Tagged(tagged) => {
            let function = tagged.tag.to_string();
            let function = function.trim_start_matches('!');
            let argument = match long(tagged.value) {
                Value::String(path) if function == "GetAtt" => json!(path.split_once('.').unwrap()),
                argument => argument,
            };
            let name = if ["Ref", "Condition"].contains(&function) { function } else { &format!("Fn::{function}") };
            Value::Object(Map::from_iter([(name.to_owned(), argument)]))
        }
        scalar => serde_json::to_value(scalar).unwrap(),
    }
}
