//! Each function is deployed from its own crate, with the time-out that the code expects, and each variable names the
//! right resource. `privileges` compares which variables and privileges a function has.

use std::collections::{BTreeMap, BTreeSet};

use platform::resources::{
    ACCOUNT_TIMEOUT, COMPACT_TIMEOUT, INGEST_TIMEOUT, KEYRING_VARIABLE, PRETRAFFIC_TIMEOUT, Queue, SWEEP_TIMEOUT,
    Table, WEBHOOK_TIMEOUT,
};
use serde_json::json;
use tests::Template;

use super::names;

#[test]
fn every_crate_below_functions_is_deployed_and_nothing_else() {
    let crates = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../functions")).unwrap();
    let crates: BTreeSet<String> = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let deployed = &Template::read().functions;
    assert_eq!(deployed.keys().collect::<Vec<_>>(), crates.iter().collect::<Vec<_>>());
    for (name, function) in deployed {
        let properties = ["CodeUri", "Handler", "Runtime"].map(|property| &function.properties[property]);
        assert_eq!(
            properties,
            [&json!(format!("target/lambda/{name}")), &json!("bootstrap"), &json!("provided.al2023")]
        );
    }
}

#[test]
fn functions_have_the_time_outs_that_the_code_expects() {
    let timeouts = [
        ("ingest", INGEST_TIMEOUT),
        ("compact", COMPACT_TIMEOUT),
        ("webhook", WEBHOOK_TIMEOUT),
        ("sweep", SWEEP_TIMEOUT),
        ("account", ACCOUNT_TIMEOUT),
        ("pretraffic", PRETRAFFIC_TIMEOUT),
    ];
    for (name, timeout) in timeouts {
        assert_eq!(Template::read().functions[name].properties["Timeout"], timeout.as_secs(), "{name}");
    }
}

#[test]
fn the_accounts_settings_are_only_for_whom_the_operator_lets_invoke_them() {
    let template = Template::read();
    let account = &template.functions["account"];
    assert_eq!(account.events().count(), 0);
    assert!(account.properties["FunctionUrlConfig"].is_null());
    // Lambda would repeat an asynchronous invocation that failed, and so make a second key.
    assert_eq!(account.properties["EventInvokeConfig"]["MaximumRetryAttempts"], 0);
    for kind in ["AWS::Lambda::Permission", "AWS::Lambda::Url", "AWS::Lambda::EventSourceMapping"] {
        for (id, resource) in template.resources(kind) {
            assert!(!resource.to_string().contains("marketplace-account"), "{id}");
        }
    }
    assert_eq!(template.output("AccountFunctionArn"), arn::function(&names().alias("account")));
}

#[test]
fn every_variable_names_its_own_resource() {
    let url = |queue| format!("https://sqs.us-east-1.amazonaws.com/000000000000/{}", names().queue(queue));
    let mut resources = BTreeMap::from([(KEYRING_VARIABLE, names().keyring())]);
    resources.extend(Table::ALL.map(|table| (table.variable(), names().table(table))));
    resources.extend(Queue::ALL.map(|queue| (queue.variable(), url(queue))));
    for (function, deployed) in &Template::read().functions {
        let variables = deployed.properties["Environment"]["Variables"].as_object().unwrap();
        for (name, resource) in &resources {
            if let Some(value) = variables.get(*name) {
                assert_eq!(value, resource, "{name} of {function}");
            }
        }
    }
}
