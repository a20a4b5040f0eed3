//! Reads what `template.yaml` deploys.

mod function;
pub mod monitoring;
mod values;
mod yaml;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

pub use function::Function;

use values::{Values, text};

/// What the template deploys as a stack with the default name.
#[derive(Debug)]
pub struct Template {
    document: Value,
    /// Functions by their names, without the stack's name.
    pub functions: BTreeMap<String, Function>,
}

impl Template {
    /// Reads the repository's template, once.
    pub fn read() -> &'static Self {
        static READ: OnceLock<Template> = OnceLock::new();
        READ.get_or_init(|| {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
            let document = yaml::parse(&std::fs::read_to_string(path).unwrap());
            let mut template = Self { document, functions: BTreeMap::new() };
            let globals = Values(&template.document).of(&template.document["Globals"]["Function"]);
            let functions = template.resources("AWS::Serverless::Function").into_iter();
            template.functions = functions.map(|(_, resource)| Function::of(&globals, &resource)).collect();
            template
        })
    }

    /// Returns the resources of a type, by their names in the template.
    pub fn resources(&self, kind: &str) -> BTreeMap<String, Value> {
        let resources = self.document["Resources"].as_object().unwrap().iter();
        let of_kind = resources.filter(|(_, resource)| text(&resource["Type"]) == kind);
        of_kind.map(|(id, resource)| (id.clone(), Values(&self.document).of(resource))).collect()
    }
}
