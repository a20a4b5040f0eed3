//! Reads what `template.yaml` and `infra/data/template.yaml` deploy.

pub mod monitoring;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use common::metrics::{Metric, Publishers};
use common::resources::{BASE_BUCKET_VARIABLE, Resources, Table};
use local::environment::ACCOUNT_ID;
use serde_json::{Value, json};

use crate::arn;
use crate::privileges::FunctionGrant;

use values::{Values, parse, text};

/// What the templates deploy as a stack with the default name.
#[derive(Debug)]
pub struct Template {
    /// The template of the service.
    document: Value,
    /// The template of the data.
    data: Value,
    /// Functions by their names, without the stack's name.
    pub functions: BTreeMap<String, Function>,
}

impl Template {
    /// Reads the repository's templates, once.
    pub fn read() -> &'static Self {
        static READ: OnceLock<Template> = OnceLock::new();
        READ.get_or_init(|| Self::with_parameters(&[]))
    }

    /// Reads the repository's templates with these values of parameters in place of their defaults. A template without
    /// such a parameter does not get it.
    pub fn with_parameters(parameters: &[(&str, &str)]) -> Self {
        let [document, data] = ["template.yaml", "infra/data/template.yaml"].map(|file| {
            let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
            let mut document = parse(&std::fs::read_to_string(path).unwrap());
            for (name, value) in parameters {
                if let Some(parameter) = document["Parameters"].get_mut(*name) {
                    parameter["Default"] = json!(value);
                }
            }
            document
        });
        let mut template = Self { document, data, functions: BTreeMap::new() };
        let globals = Values(&template.document).evaluated(&template.document["Globals"]["Function"]);
        let functions = template.resources("AWS::Serverless::Function").into_iter();
        template.functions = functions.map(|(_, resource)| Function::from_resource(&globals, &resource)).collect();
        template
    }

    /// Returns the resources of a type in both templates, by their names there.
    pub fn resources(&self, kind: &str) -> BTreeMap<String, Value> {
        let all = self.service().into_iter().chain(self.data());
        all.filter(|(_, resource)| resource["Type"] == kind).collect()
    }

    /// Returns all resources of the service, by their names in its template.
    pub fn service(&self) -> BTreeMap<String, Value> {
        all_resources(&self.document)
    }

    /// Returns all resources that keep data, by their names in their template.
    pub fn data(&self) -> BTreeMap<String, Value> {
        all_resources(&self.data)
    }

    /// Returns the parameters that the functions' properties refer to, conditions left out.
    pub fn parameters_of_functions(&self) -> BTreeSet<&str> {
        let resources = self.document["Resources"].as_object().unwrap().values();
        let functions = resources.filter(|resource| resource["Type"] == "AWS::Serverless::Function");
        let properties = functions.map(|function| &function["Properties"]).chain([&self.document["Globals"]]);
        let referred = properties.flat_map(values::references);
        referred.filter(|name| self.document["Parameters"][*name].is_object()).collect()
    }

    /// Returns the functions whose aliases move before that of a function. All are named as in the template.
    pub fn moved_before(&self, function: &str) -> BTreeSet<&str> {
        let places = [&self.document["Resources"][function]["Properties"], &self.document["Globals"]["Function"]];
        let roles = places.map(|properties| &properties["DeploymentPreference"]["Role"]);
        let role = roles.into_iter().find(|role| !role.is_null()).unwrap();
        values::references(role).into_iter().filter_map(|name| name.strip_suffix(".Alias")).collect()
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
        match metric.publishers() {
            Publishers::AuthenticatedApi => {
                self.functions_that(|function| function.is_triggered_by("HttpApi") && function.uses(Table::Keys))
            }
            Publishers::TableUsers => {
                let uses = |function: &Function| Table::ALL.iter().any(|table| function.uses(*table));
                self.functions_that(|function| !function.is_hook() && uses(function))
            }
            Publishers::Replicas => self.functions_that(Function::has_replica),
            Publishers::BaseUsers => {
                self.functions_that(|function| !function.is_hook() && function.has(BASE_BUCKET_VARIABLE))
            }
            Publishers::Only(names) => names.iter().copied().collect(),
        }
    }

    /// Returns whether a function publishes a metric of this name.
    pub fn publishes(&self, function: &str, name: &str) -> bool {
        Metric::ALL.into_iter().any(|metric| metric.as_str() == name && self.publishers(metric).contains(function))
    }
}

fn all_resources(document: &Value) -> BTreeMap<String, Value> {
    let resources = document["Resources"].as_object().unwrap().iter();
    resources.map(|(id, resource)| (id.clone(), Values(document).evaluated(resource))).collect()
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its own properties, merged with the global ones.
    pub properties: Value,
    /// Its environment variables and its privileges.
    pub grants: BTreeSet<FunctionGrant>,
    /// The conditions of privileges that have any.
    pub(crate) conditions: BTreeMap<FunctionGrant, Value>,
}

impl Function {
    /// Reads a function resource. Returns its name without the stack's, and the function.
    pub(super) fn from_resource(globals: &Value, resource: &Value) -> (String, Self) {
        let mut properties = globals.clone();
        merge(&mut properties, &resource["Properties"]);
        let name = text(&properties["FunctionName"]);
        let own = name.split_once(Resources::DEFAULT_STACK).unwrap().1;
        let name = own[1..].to_owned();
        let variables = properties["Environment"]["Variables"].as_object().into_iter().flat_map(|all| all.keys());
        let policies = properties["Policies"].as_array().into_iter().flatten();
        let statements = policies.flat_map(|policy| policy["Statement"].as_array().expect("statements, not names"));
        let mut grants: BTreeSet<_> = variables.cloned().map(FunctionGrant::Variable).collect();
        let mut conditions = BTreeMap::new();
        for (statement, privilege) in statements.flat_map(|one| privileges(one).into_iter().map(move |it| (one, it))) {
            if let Some(condition) = statement.get("Condition") {
                conditions.insert(privilege.clone(), condition.clone());
            }
            grants.insert(privilege);
        }
        (name, Self { properties, grants, conditions })
    }

    /// Returns the events in its own properties that trigger it.
    pub fn events(&self) -> impl Iterator<Item = &Value> {
        self.properties["Events"].as_object().into_iter().flat_map(|events| events.values())
    }

    /// Returns whether an event of this type triggers it.
    pub fn is_triggered_by(&self, kind: &str) -> bool {
        self.events().any(|event| event["Type"] == kind)
    }

    /// Returns whether it is the hook of deployments.
    pub fn is_hook(&self) -> bool {
        self.properties["FunctionName"] == Resources::new(Resources::DEFAULT_STACK).hook()
    }

    /// Returns whether it is told the name of a table.
    pub fn uses(&self, table: Table) -> bool {
        self.has(table.variable())
    }

    /// Returns whether it answers requests from a replica.
    pub fn has_replica(&self) -> bool {
        self.is_triggered_by("HttpApi") && self.has(BASE_BUCKET_VARIABLE)
    }

    /// Returns whether its environment has this variable.
    pub fn has(&self, variable: &str) -> bool {
        self.grants.contains(&FunctionGrant::Variable(variable.to_owned()))
    }
}

/// Returns the parameter with the end of a table's name.
pub fn table_parameter(table: Table) -> String {
    let (first, rest) = table.suffix().split_at(1);
    format!("{}{rest}Table", first.to_uppercase())
}

/// Returns what a policy statement allows, action by action and resource by resource. One that denies allows nothing.
fn privileges(statement: &Value) -> Vec<FunctionGrant> {
    if statement["Effect"] == json!("Deny") {
        return Vec::new();
    }
    // All accounts share the names of buckets.
    let is_on_bucket = statement["Resource"].as_str().is_some_and(|on| on.starts_with(&arn::bucket("")));
    let own = json!({"StringEquals": {"aws:ResourceAccount": ACCOUNT_ID}});
    assert!(!is_on_bucket || statement["Condition"] == own, "{statement}");
    let is_known = |name: &String| ["Action", "Condition", "Effect", "Resource"].contains(&name.as_str());
    let is_read = statement.as_object().unwrap().keys().all(is_known);
    assert!(is_read && statement["Effect"] == json!("Allow"), "{statement}");
    let all = |name: &str| statement[name].as_array().cloned().unwrap_or_else(|| vec![statement[name].clone()]);
    let resources = all("Resource");
    let actions = all("Action").into_iter();
    actions
        .flat_map(|action| resources.iter().map(move |on| FunctionGrant::privilege(text(&action), text(on))))
        .collect()
}

/// Merges global properties with a function's own as SAM does.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Returns the properties of a resource of the edge that is in front of `origin.example.com`, with a secret named `edge`.
pub fn edge_resource(id: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/edge/template.yaml");
    let mut document = parse(&std::fs::read_to_string(path).unwrap());
    let given = [("OriginHost", "origin.example.com"), ("OriginSecret", "edge"), ("DomainName", "api.example.com")];
    for (parameter, value) in given {
        document["Parameters"][parameter]["Default"] = json!(value);
    }
    Values(&document).evaluated(&document["Resources"][id]["Properties"])
}
