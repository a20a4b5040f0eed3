//! Reads what `template.yaml` deploys.

pub mod edge;
mod function;
pub mod monitoring;
mod values;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use platform::metrics::{Metric, Publishers};
use platform::resources::Table;
use serde_json::{Value, json};

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
        READ.get_or_init(|| Self::with_parameters(&[]))
    }

    /// Reads the repository's template with these values of parameters in place of their defaults.
    pub fn with_parameters(parameters: &[(&str, &str)]) -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
        let mut document = yaml::parse(&std::fs::read_to_string(path).unwrap());
        for (name, value) in parameters {
            document["Parameters"][*name]["Default"] = json!(value);
        }
        let mut template = Self { document, functions: BTreeMap::new() };
        let globals = Values(&template.document).evaluated(&template.document["Globals"]["Function"]);
        let functions = template.resources("AWS::Serverless::Function").into_iter();
        template.functions = functions.map(|(_, resource)| Function::from_resource(&globals, &resource)).collect();
        template
    }

    /// Returns the resources of a type, by their names in the template.
    pub fn resources(&self, kind: &str) -> BTreeMap<String, Value> {
        let resources = self.document["Resources"].as_object().unwrap().iter();
        let of_kind = resources.filter(|(_, resource)| text(&resource["Type"]) == kind);
        of_kind.map(|(id, resource)| (id.clone(), Values(&self.document).evaluated(resource))).collect()
    }

    /// Returns the definition of a parameter.
    pub fn parameter(&self, name: &str) -> &Value {
        &self.document["Parameters"][name]
    }

    /// Returns what the rules say against the parameters.
    pub fn objections(&self) -> Vec<&str> {
        let holds = |condition: &Value| Values(&self.document).evaluated(condition) == json!(true);
        let rules = self.document["Rules"].as_object().unwrap().values();
        let assertions = rules
            .filter(|rule| holds(&rule["RuleCondition"]))
            .flat_map(|rule| rule["Assertions"].as_array().unwrap())
            .filter(|assertion| !holds(&assertion["Assert"]));
        assertions.map(|assertion| text(&assertion["AssertDescription"])).collect()
    }

    /// Returns the names of the functions that meet a condition.
    pub fn functions_that(&self, meet: impl Fn(&Function) -> bool) -> BTreeSet<&str> {
        let functions = self.functions.iter().filter(|(_, function)| meet(function));
        functions.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the value of an output. An attribute of a function stands for itself.
    pub fn output(&self, name: &str) -> Value {
        Values(&self.document).evaluated(&self.document["Outputs"][name]["Value"])
    }

    /// Returns the functions that publish a metric.
    pub fn publishers(&self, metric: Metric) -> BTreeSet<&str> {
        let is_routed = |function: &Function| function.is_triggered_by("HttpApi");
        match metric.publishers() {
            Publishers::Api => self.functions_that(is_routed),
            Publishers::AuthenticatedApi => {
                self.functions_that(|function| is_routed(function) && function.uses(Table::Keys))
            }
            Publishers::TableUsers => {
                self.functions_that(|function| Table::ALL.iter().any(|table| function.uses(*table)))
            }
            Publishers::Only(names) => names.iter().copied().collect(),
        }
    }

    /// Returns whether a function publishes a metric of this name.
    pub fn publishes(&self, function: &str, name: &str) -> bool {
        Metric::ALL.into_iter().any(|metric| metric.as_str() == name && self.publishers(metric).contains(function))
    }
}
