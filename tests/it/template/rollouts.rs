//! How new versions get their traffic. Everything calls a function by its alias, `CodeDeploy` moves the alias, and asks the
//! hook before the first.

use std::collections::BTreeSet;
use std::path::Path;

use common::resources::{ALIAS, Table};
use pretraffic::{STACK_VARIABLE, VERSIONS_VARIABLE};
use serde_json::{Value, json};
use tests::{Function, Template, arn, table_parameter};

use super::names;

/// The most aliases that move at a time. Lambda takes 15 requests a second that change something.
const WAVE: usize = 5;

/// Returns the functions that the hook tries.
fn with_versions(template: &Template) -> impl Iterator<Item = (&String, &Function)> {
    template.functions.iter().filter(|(_, function)| !function.is_hook())
}

#[test]
fn every_function_has_the_alias_and_only_that_of_the_hook_moves_behind_the_hook() {
    let template = Template::read();
    for (name, function) in &template.functions {
        let properties = &function.properties;
        assert_eq!(properties["AutoPublishAlias"], ALIAS, "{name}");
        // Otherwise a new time-out, for example, would change no version.
        assert_eq!(properties["AutoPublishAliasAllProperties"], true, "{name}");
        let preference = &properties["DeploymentPreference"];
        assert_eq!(preference["Type"], "AllAtOnce", "{name}");
        let asked = if function.is_hook() { &properties["FunctionName"] } else { &Value::Null };
        assert_eq!(&preference["Hooks"]["PreTraffic"], asked, "{name}");
    }
    let hook = &template.functions["pretraffic"].properties;
    assert_eq!(hook["FunctionName"], names().hook());
    // It invokes itself if no concurrency is left.
    assert_eq!(hook["RecursiveLoop"], "Allow");
}

#[test]
fn aliases_move_after_that_of_the_hook_and_a_few_at_a_time() {
    let template = Template::read();
    let functions = template.resources("AWS::Serverless::Function");
    let mut moved = BTreeSet::from(["PretrafficFunction"]);
    while moved.len() < functions.len() {
        let left = functions.keys().map(String::as_str).filter(|name| !moved.contains(name));
        let wave: BTreeSet<&str> = left
            .filter(|name| {
                let before = template.moved_before(name);
                !before.is_empty() && before.is_subset(&moved)
            })
            .collect();
        assert!((1..=WAVE).contains(&wave.len()), "{wave:?} after {moved:?}");
        moved.extend(wave);
    }
}

/// A new version of any function makes one of the hook, so that `CodeDeploy` asks it.
#[test]
fn the_hook_has_a_new_version_if_any_function_has() {
    let template = Template::read();
    let described = template.functions["pretraffic"].properties["VersionDescription"].as_str().unwrap();
    let functions = template.resources("AWS::Serverless::Function");
    for name in functions.keys().filter(|name| *name != "PretrafficFunction") {
        assert!(described.contains(&format!(" {name}.Version.Version")), "{name}: {described}");
    }
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
    let replicas: Vec<&str> = Template::read().functions_that(Function::has_replica).into_iter().collect();
    for (parameter, value, functions) in [
        ("ReplicaMemory", "3008", &replicas[..]),
        ("OriginSecret", "marketplace-edge-1", &of_the_api[..]),
        ("CompactMemory", "3008", &["compact"][..]),
        ("WebhookSubnetIds", "subnet-1", &["webhook"][..]),
        ("WebhookSecurityGroupIds", "sg-1", &["webhook"][..]),
    ] {
        assert_eq!(used_by(parameter, value), functions, "{parameter}");
    }
    for (parameter, value, property) in
        [("ReplicaMemory", "3008", "MemorySize"), ("ProvisionedConcurrency", "2", "ProvisionedConcurrencyConfig")]
    {
        let changed = Template::with_parameters(&[(parameter, value)]);
        for function in &replicas {
            let before = &Template::read().functions[*function].properties[property];
            assert_ne!(&changed.functions[*function].properties[property], before, "{parameter} of {function}");
        }
    }
    for table in Table::ALL {
        let functions = Template::read().functions_that(|function| !function.is_hook() && function.uses(table));
        let functions: Vec<&str> = functions.into_iter().collect();
        assert_eq!(used_by(&table_parameter(table), &format!("{}-2", table.suffix())), functions, "{table:?}");
    }
    assert_eq!(used_by("Tracing", "Active").len(), published.len());
    // What has no part in a version must not be described: Lambda refuses to publish the same version twice.
    for (parameter, value) in [("ProvisionedConcurrency", "2"), ("ThrottleRate", "5")] {
        assert_eq!(used_by(parameter, value), [""; 0], "{parameter}");
    }
}

#[test]
fn every_parameter_in_a_functions_properties_is_one_of_those_that_make_new_versions() {
    let known = [
        "Tracing",
        "ReplicaMemory",
        "CompactMemory",
        "MaxKeysPerUser",
        "WebhookSubnetIds",
        "WebhookSecurityGroupIds",
        "OriginSecret",
        "KeysTable",
        "MarketTable",
        "AccountsTable",
        "WebhooksTable",
        // It is part of the role.
        "PermissionsBoundary",
        // It is a tag.
        "AlarmTopicArn",
        // It is part of the alias.
        "ProvisionedConcurrency",
    ];
    assert_eq!(Template::read().parameters_of_functions(), known.into());
}

/// A restored table has another name.
#[test]
fn variables_rights_and_alarms_follow_the_name_of_a_table() {
    for table in Table::ALL {
        let (own, parameter) = (names().table(table), table_parameter(table));
        let template = Template::with_parameters(&[(&parameter, &format!("{}-2", table.suffix()))]);
        for function in template.functions.values().filter(|function| function.uses(table)) {
            assert_eq!(function.properties["Environment"]["Variables"][table.variable()], format!("{own}-2"));
        }
        let service = json!(template.service()).to_string();
        for old in [format!("\"{own}\""), format!("/{own}\""), format!("/{own}/")] {
            assert!(!service.contains(&old), "{old}");
        }
        let alarms = &template.service()["AlarmStack"]["Properties"]["Parameters"];
        assert_eq!(alarms[parameter.as_str()], format!("{}-2", table.suffix()));
    }
}

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn every_action_is_pinned_by_its_commit_and_no_workflow_uses_a_stored_secret() {
    let folder = std::fs::read_dir(Path::new(ROOT).join(".github/workflows")).unwrap();
    let workflows: String = folder.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    // Credentials come from the job's own token. A key that is stored could leak.
    assert!(!workflows.contains("secrets."));
    let steps = workflows.lines().map(|line| line.trim().trim_start_matches("- "));
    let actions: Vec<&str> = steps.filter_map(|line| line.strip_prefix("uses: ")).collect();
    assert!(!actions.is_empty());
    for action in actions {
        let pin = action.split_once('@').and_then(|(_, rest)| rest.split(' ').next());
        let pinned = pin.is_some_and(|pin| pin.len() == 40 && pin.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(pinned || action.starts_with("./.github/workflows/"), "{action}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

/// `CloudFormation` passes over a value of a parameter that a template does not have, without a word.
#[test]
fn samconfig_gives_parameters_that_its_template_has() {
    for (samconfig, template) in
        [("samconfig.toml", "template.yaml"), ("infra/data/samconfig.toml", "infra/data/template.yaml")]
    {
        let (given, template) = (read(samconfig), read(template));
        let given = given.lines().filter_map(|line| line.strip_prefix("parameter_overrides = \""));
        let names: Vec<&str> =
            given.flat_map(|line| line.split(' ').filter_map(|pair| pair.split('=').next())).collect();
        assert!(!names.is_empty(), "{samconfig}");
        for name in names {
            assert!(template.contains(&format!("\n  {name}:\n    Type: ")), "{samconfig}: {name}");
        }
    }
}
