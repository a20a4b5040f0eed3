//! How new versions get their traffic. Everything calls a function by its alias, `CodeDeploy` moves the alias, and the
//! hook and alarms that it asks exist.
//!
//! Compares the workflows of the delivery pipeline with the script that they call.

use std::collections::BTreeSet;
use std::path::Path;

use common::resources::ALIAS;
use pretraffic::{STACK_VARIABLE, VERSIONS_VARIABLE};
use serde_json::{Value, json};
use tests::monitoring::{rollback_alarm_properties, rollback_alarms};
use tests::{Function, Template, arn};

use super::names;

/// A value of `Rollout` that moves traffic step by step.
const GRADUAL: &str = "Canary10Percent5Minutes";

fn gradual() -> Template {
    Template::with_parameters(&[("Rollout", GRADUAL)])
}

/// Returns the functions that have versions.
fn with_versions(template: &Template) -> impl Iterator<Item = (&String, &Function)> {
    template.functions.iter().filter(|(_, function)| !function.is_hook())
}

#[test]
fn every_function_but_the_hook_has_the_alias_and_is_deployed_behind_the_hook() {
    let template = Template::read();
    for (name, Function { properties, .. }) in with_versions(template) {
        assert_eq!(properties["AutoPublishAlias"], ALIAS, "{name}");
        // Otherwise a new time-out, for example, would change no version.
        assert_eq!(properties["AutoPublishAliasAllProperties"], true, "{name}");
        let preference = &properties["DeploymentPreference"];
        assert_eq!(preference["Type"], "AllAtOnce", "{name}");
        assert_eq!(preference["Hooks"]["PreTraffic"], template.functions["pretraffic"].properties["FunctionName"]);
    }
    let hook = &template.functions["pretraffic"].properties;
    assert_eq!(hook["FunctionName"], "CodeDeployHook_marketplace-pretraffic");
    assert_eq!((&hook["AutoPublishAlias"], &hook["DeploymentPreference"]["Enabled"]), (&json!(""), &json!(false)));
    // It invokes itself if no concurrency is left.
    assert_eq!(hook["RecursiveLoop"], "Allow");
}

#[test]
fn the_hook_tries_the_new_versions_of_all_functions() {
    let template = Template::read();
    let variables = &template.functions["pretraffic"].properties["Environment"]["Variables"];
    assert_eq!(variables[STACK_VARIABLE], "marketplace");
    let tried: BTreeSet<String> =
        variables[VERSIONS_VARIABLE].as_str().unwrap().split(',').map(str::to_owned).collect();
    let versions = with_versions(template).map(|(name, _)| arn::function(&format!("{}:1", names().function(name))));
    assert_eq!(tried, versions.collect());
}

/// A deployment all at once ends before an alarm could fire. It is also the way to mend what an alarm fires about.
#[test]
fn gradual_deployments_heed_every_rollback_alarm_and_others_none() {
    let heeded = |template: &Template| -> BTreeSet<Vec<String>> {
        let alarms = with_versions(template).map(|(_, function)| {
            let alarms = function.properties["DeploymentPreference"]["Alarms"].as_array().unwrap();
            alarms.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        });
        alarms.collect()
    };
    assert_eq!(heeded(Template::read()), [vec![]].into());
    let mut existing: Vec<String> = rollback_alarms().into_iter().map(|alarm| names().function(&alarm.name)).collect();
    existing.sort();
    assert_eq!(heeded(&gradual()), [existing].into());
    assert_eq!(gradual().functions["me"].properties["DeploymentPreference"]["Type"], GRADUAL);
}

#[test]
fn rollback_alarms_see_a_bad_minute_at_once_and_take_silence_for_good() {
    for alarm in rollback_alarm_properties() {
        for query in alarm["Metrics"].as_array().unwrap().iter().filter(|query| query["MetricStat"].is_object()) {
            assert_eq!((&query["MetricStat"]["Period"], &query["ReturnData"]), (&json!(60), &json!(false)), "{alarm}");
        }
        assert_eq!((&alarm["EvaluationPeriods"], &alarm["DatapointsToAlarm"]), (&json!(3), &json!(2)), "{alarm}");
        assert_eq!(alarm["TreatMissingData"], "notBreaching");
        assert!(alarm.get("AlarmActions").is_none(), "{alarm}");
    }
}

/// SAM does not see that a parameter has another value. The description of a version tells `CloudFormation`.
#[test]
fn a_parameter_with_another_value_makes_new_versions_of_the_functions_that_use_it() {
    let described = |template: &Template| -> BTreeSet<(String, String)> {
        let described = with_versions(template).map(|(name, function)| {
            (name.clone(), function.properties["VersionDescription"].as_str().unwrap().to_owned())
        });
        described.collect()
    };
    let published = described(Template::read());
    let used_by = |parameter: &str, value: &str| -> Vec<String> {
        let changed = described(&Template::with_parameters(&[(parameter, value)]));
        changed.difference(&published).map(|(name, _)| name.clone()).collect()
    };
    let of_the_api: Vec<&str> =
        Template::read().functions_that(|function| function.is_triggered_by("HttpApi")).into_iter().collect();
    for (parameter, value, functions) in [
        ("ReplicaMemory", "3008", &["catalog", "listings"][..]),
        ("OriginSecret", "marketplace-edge-1", &of_the_api[..]),
        ("CompactMemory", "3008", &["compact"][..]),
        ("RebuildReadUnits", "3000", &["compact"][..]),
        ("WebhookSubnetIds", "subnet-1", &["webhook"][..]),
        ("WebhookSecurityGroupIds", "sg-1", &["webhook"][..]),
    ] {
        assert_eq!(used_by(parameter, value), functions, "{parameter}");
    }
    assert_eq!(used_by("Tracing", "Active").len(), published.len());
    // What has no part in a version must not be described: Lambda refuses to publish the same version twice.
    for (parameter, value) in [("Rollout", GRADUAL), ("ProvisionedConcurrency", "2"), ("ThrottleRate", "5")] {
        assert_eq!(used_by(parameter, value), [""; 0], "{parameter}");
    }
}

#[test]
fn every_parameter_in_a_functions_properties_is_one_of_those_that_make_new_versions() {
    let known = [
        "Architecture",
        "Tracing",
        "ReplicaMemory",
        "CompactMemory",
        "RebuildReadUnits",
        "MaxKeysPerUser",
        "WebhookSubnetIds",
        "WebhookSecurityGroupIds",
        "OriginSecret",
        // It is part of the role.
        "PermissionsBoundary",
        // They are part of the alias or of its deployment.
        "CodeDeployRole",
        "ProvisionedConcurrency",
        "Rollout",
    ];
    assert_eq!(Template::read().parameters_of_functions(), known.into());
}

#[test]
fn only_catalog_and_listings_have_provisioned_concurrency_and_only_if_asked() {
    let provisioned = |template: &Template| -> Vec<(String, Value)> {
        let all = template.functions.iter();
        let all =
            all.map(|(name, function)| (name.clone(), function.properties["ProvisionedConcurrencyConfig"].clone()));
        all.filter(|(_, config)| !config.is_null()).collect()
    };
    assert!(provisioned(Template::read()).is_empty());
    let config = || json!({"ProvisionedConcurrentExecutions": "2"});
    let asked = Template::with_parameters(&[("ProvisionedConcurrency", "2")]);
    assert_eq!(provisioned(&asked), ["catalog", "listings"].map(|name| (name.to_owned(), config())));
}

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn workflows_take_every_step_of_the_script_and_no_other() {
    let offered: BTreeSet<String> = read("infra/pipeline/run")
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" ;;")?.split_once(") "))
        .map(|(step, _)| step.to_owned())
        .filter(|step| step != "*")
        .collect();
    assert!(offered.contains("deploy"), "{offered:?}");
    assert_eq!(workflows().iter().flat_map(|text| steps(text)).collect::<BTreeSet<_>>(), offered);
}

#[test]
fn every_action_is_pinned_by_its_commit() {
    let workflows = workflows();
    let lines = workflows.iter().flat_map(|text| text.lines());
    let used: Vec<&str> =
        lines.filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: ")).collect();
    assert!(!used.is_empty());
    for action in used {
        let pin = action.split_once('@').and_then(|(_, rest)| rest.split(' ').next());
        let pinned = pin.is_some_and(|pin| pin.len() == 40 && pin.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(pinned || action.starts_with("./.github/workflows/"), "{action}");
    }
}

/// Credentials come from the job's own token. A key that is stored could leak.
#[test]
fn no_workflow_uses_a_stored_secret() {
    for text in workflows() {
        assert!(!text.contains("secrets."), "{text}");
    }
}

/// Without an address of its own, `smoke` asks the gateway, which refuses what does not come through the edge.
#[test]
fn a_stage_is_deployed_to_its_own_region_and_asked_at_its_own_address() {
    let stage = read(".github/workflows/stage.yml");
    for (variable, reader) in
        [("AWS_REGION", "infra/pipeline/run"), ("MARKETPLACE_BASE_URL", "infra/pipeline/answers.py")]
    {
        assert!(stage.contains(&format!("{variable}: ${{{{ vars.")), "{variable}");
        assert!(read(reader).contains(variable), "{reader}");
    }
    assert!(read("infra/pipeline/run").contains("--stack-name \"$STACK\" --region \"$AWS_REGION\""));
}

/// Returns the steps that a text calls the script with.
fn steps(text: &str) -> BTreeSet<String> {
    let calls = text.split("infra/pipeline/run ").skip(1);
    calls.map(|call| call.chars().take_while(|each| each.is_ascii_lowercase() || *each == '-').collect()).collect()
}

fn workflows() -> Vec<String> {
    let folder = std::fs::read_dir(Path::new(ROOT).join(".github/workflows")).unwrap();
    folder.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

#[test]
fn the_smoke_test_gives_parameters_that_the_templates_have() {
    let (stack, templates) = (read("infra/smoke/stack.py"), read("template.yaml") + &read("infra/data/template.yaml"));
    let (given, _) = stack.split_once("PARAMETERS = {\n").and_then(|(_, rest)| rest.split_once("\n}")).unwrap();
    for name in given.lines().map(|line| line.split('"').nth(1).unwrap()) {
        assert!(templates.contains(&format!("\n  {name}:\n    Type: ")), "{name}");
    }
}
