//! What `infra/edge/template.yaml` deploys.

use serde_json::{Value, json};

use super::values::Values;
use super::yaml;

/// Returns the properties of a resource of the edge that is in front of `origin.example.com`, with a secret named `edge`.
pub fn resource(id: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/edge/template.yaml");
    let mut document = yaml::parse(&std::fs::read_to_string(path).unwrap());
    for (parameter, value) in [("OriginHost", "origin.example.com"), ("OriginSecret", "edge")] {
        document["Parameters"][parameter]["Default"] = json!(value);
    }
    Values(&document).evaluated(&document["Resources"][id]["Properties"])
}
