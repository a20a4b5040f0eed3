//! A function as the template deploys it.

use std::collections::BTreeSet;

use platform::resources::{Resources, Table};
use serde_json::{Value, json};

use super::values::text;
use crate::privileges::FunctionGrant;

/// `CodeDeploy` invokes only functions whose names begin like this.
const HOOK_PREFIX: &str = "CodeDeployHook_";

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its own properties, merged with the global ones.
    pub properties: Value,
    /// Its environment variables and its privileges.
    pub grants: BTreeSet<FunctionGrant>,
}

impl Function {
    /// Reads a function resource. Returns its name without the stack's, and the function.
    pub(super) fn from_resource(globals: &Value, resource: &Value) -> (String, Self) {
        let mut properties = globals.clone();
        merge(&mut properties, &resource["Properties"]);
        let name = text(&properties["FunctionName"]);
        let name = name.strip_prefix(HOOK_PREFIX).unwrap_or(name);
        let name = name.strip_prefix(Resources::DEFAULT_STACK).unwrap()[1..].to_owned();
        let variables = properties["Environment"]["Variables"].as_object().into_iter().flat_map(|all| all.keys());
        let policies = properties["Policies"].as_array().into_iter().flatten();
        let statements = policies.flat_map(|policy| policy["Statement"].as_array().expect("statements, not names"));
        let grants = variables.cloned().map(FunctionGrant::Variable).chain(statements.flat_map(privileges)).collect();
        (name, Self { properties, grants })
    }

    /// Returns the events in its own properties that trigger it.
    pub fn events(&self) -> impl Iterator<Item = &Value> {
        self.properties["Events"].as_object().into_iter().flat_map(|events| events.values())
    }

    /// Returns whether an event of this type triggers it.
    pub fn is_triggered_by(&self, kind: &str) -> bool {
        self.events().any(|event| event["Type"] == kind)
    }

    /// Returns whether it is a hook of deployments, which has no versions.
    pub fn is_hook(&self) -> bool {
        text(&self.properties["FunctionName"]).starts_with(HOOK_PREFIX)
    }

    /// Returns whether it is told the name of a table.
    pub fn uses(&self, table: Table) -> bool {
        self.grants.contains(&FunctionGrant::Variable(table.variable().to_owned()))
    }
}

/// Returns what a policy statement allows, action by action and resource by resource. One that denies allows nothing.
fn privileges(statement: &Value) -> Vec<FunctionGrant> {
    if statement["Effect"] == json!("Deny") {
        return Vec::new();
    }
    let known = ["Action", "Effect", "Resource"];
    assert!(statement.as_object().unwrap().keys().eq(known) && statement["Effect"] == json!("Allow"), "{statement}");
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
