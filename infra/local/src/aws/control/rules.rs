//! EventBridge: the rules of schedules.

use std::sync::Arc;

use serde_json::{Value, json};

use super::names::{Answered, Refused, alias_arn, deployed, not_found};
use crate::switches::{Switch, Switches, Trigger};

/// Answers a call by its operation. A rule that is being disabled is off once no invocation runs any more.
pub(super) async fn answer(switches: &Switches, operation: &str, request: &Value) -> Answered {
    let name = request["Name"].as_str().unwrap_or_default();
    match operation {
        "ListRuleNamesByTarget" => {
            let target = request["TargetArn"].as_str().unwrap_or_default();
            let found = rules(switches).filter(|(function, _)| alias_arn(function) == target);
            let names: Vec<String> = found.map(|(function, _)| rule(function)).collect();
            Ok(json!({ "RuleNames": names }))
        }
        "DescribeRule" => {
            let state = if of(switches, name)?.is_on() { "ENABLED" } else { "DISABLED" };
            Ok(json!({ "Name": name, "State": state }))
        }
        "EnableRule" => {
            of(switches, name)?.set(true);
            Ok(json!({}))
        }
        "DisableRule" => {
            let switch = of(switches, name)?;
            switch.set(false);
            switch.wait_until_idle().await;
            Ok(json!({}))
        }
        other => Err(("ValidationException", format!("{other} is not among the operations served here"))),
    }
}

fn rules(switches: &Switches) -> impl Iterator<Item = (&'static str, &Arc<Switch>)> {
    switches.iter().filter_map(|(trigger, switch)| match trigger {
        Trigger::Schedule(function) => Some((function, switch)),
        Trigger::Queue(_) | Trigger::Requests(_) => None,
    })
}

/// Returns the name of a function's rule.
fn rule(function: &str) -> String {
    format!("{}-every-minute", deployed(function))
}

fn of<'s>(switches: &'s Switches, name: &str) -> Result<&'s Arc<Switch>, Refused> {
    let found = rules(switches).find(|(function, _)| rule(function) == name);
    found.map(|(_, switch)| switch).ok_or_else(|| not_found(name))
}
