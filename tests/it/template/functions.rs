//! Each function is deployed from its own crate with the routes, time-outs, triggers and network that the code expects,
//! and each variable names the right resource. `privileges` compares which variables and privileges a function has.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::Path;
use std::time::Duration;

use api::routes::{DEFAULT, ROUTES};
use common::resources::{
    ACCOUNT_TIMEOUT, Batching, COMPACT_PERIOD, COMPACT_TIMEOUT, INGEST_TIMEOUT, KEYRING_VARIABLE, PRETRAFFIC_TIMEOUT,
    Queue, SWEEP_PERIOD, SWEEP_TIMEOUT, Table, WEBHOOK_TIMEOUT,
};
use serde_json::{Value, json};
use tests::{Template, arn, metadata};

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
fn no_function_may_make_a_log_group() {
    let template = Template::read();
    let policies = template.resources("AWS::IAM::ManagedPolicy");
    let statements = &policies["FunctionBoundary"]["Properties"]["PolicyDocument"]["Statement"];
    assert_eq!(statements, &json!([{"Effect": "Allow", "NotAction": "logs:CreateLogGroup", "Resource": "*"}]));
    for (name, function) in &template.functions {
        assert_eq!(function.properties["PermissionsBoundary"], "FunctionBoundary", "{name}");
        assert_eq!(function.properties["LoggingConfig"]["LogGroup"], "FunctionLogs", "{name}");
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

#[test]
fn the_gateway_has_the_routes_of_the_project() {
    let mut deployed = BTreeSet::new();
    for (name, function) in &Template::read().functions {
        for event in function.events().filter(|event| event["Type"] == "HttpApi") {
            deployed.insert((event["Properties"].to_string(), name.as_str()));
        }
    }
    // A route takes any method. The event without method and path takes what no route matches.
    let any = |path: &str| json!({"ApiId": "marketplace", "Method": "ANY", "Path": path}).to_string();
    let mut expected: BTreeSet<_> = ROUTES.iter().map(|route| (any(route.path), route.function)).collect();
    expected.insert((json!({"ApiId": "marketplace"}).to_string(), DEFAULT));
    assert_eq!(deployed, expected);
}

#[test]
fn queues_trigger_their_functions_with_partial_failure_and_a_long_enough_visibility_time_out() {
    let triggers = iter::once((Queue::Feed, "ingest")).chain(Queue::LANES.map(|lane| (lane, "webhook")));
    let mut sources = Template::read().resources("AWS::Lambda::EventSourceMapping");
    for (queue, function) in triggers {
        let arn = arn::queue(&names().queue(queue));
        let found = sources.extract_if(.., |_, source| source["Properties"]["EventSourceArn"] == arn.as_str()).next();
        let source = &found.unwrap_or_else(|| panic!("nothing reads {arn}")).1["Properties"];
        assert_eq!(source["FunctionName"], arn::function(&names().alias(function)));
        assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{function}");
        let batching = if queue == Queue::WebhooksSlow { Batching::DRAINS } else { Batching::AT_ONCE };
        let Batching { messages, window } = batching;
        assert_eq!(source["BatchSize"], messages, "{function}");
        assert_eq!(source["MaximumBatchingWindowInSeconds"].as_u64().unwrap_or(0), window.as_secs(), "{function}");
        let timeout = Template::read().functions[function].properties["Timeout"].as_u64().unwrap();
        let least = if queue == Queue::Feed { 6 * timeout + Batching::LARGEST.window.as_secs() } else { 3 * timeout };
        assert!(queue.visibility_seconds() >= least, "{function}");
        // These functions send copies to queues that they read. Lambda would end that as a loop.
        assert_eq!(Template::read().functions[function].properties["RecursiveLoop"], "Allow", "{function}");
    }
    assert!(sources.is_empty(), "{sources:?}");
}

#[test]
fn schedules_trigger_their_functions_as_often_as_the_code_expects() {
    let mut schedules = BTreeSet::new();
    for (name, function) in &Template::read().functions {
        for event in function.events().filter(|event| event["Type"] != "HttpApi") {
            assert_eq!(event["Type"], "Schedule", "{name}");
            schedules.insert((name.as_str(), event["Properties"].to_string()));
        }
    }
    assert_eq!(schedules, [("compact", every(COMPACT_PERIOD)), ("sweep", every(SWEEP_PERIOD))].into());
}

fn every(period: Duration) -> String {
    let (minutes, rest) = (period.as_secs() / 60, period.as_secs() % 60);
    assert_eq!(rest, 0, "a schedule has whole minutes");
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    json!({"Schedule": format!("rate({minutes} {unit})")}).to_string()
}

const SUBNETS: &str = "WebhookSubnetIds";
const GROUPS: &str = "WebhookSecurityGroupIds";

/// Returns the networks of the functions that are in one.
fn networks(template: &Template) -> BTreeMap<&str, &Value> {
    let networks = template.functions.iter().map(|(name, function)| (name.as_str(), &function.properties["VpcConfig"]));
    networks.filter(|(_, network)| !network.is_null()).collect()
}

/// The network has no IPv6, because a VPC's own IPv6 addresses are public ones to the address guard.
#[test]
fn subnets_and_security_groups_put_webhook_alone_into_a_network_without_ipv6() {
    let template = Template::with_parameters(&[(SUBNETS, "subnet-1,subnet-2"), (GROUPS, "sg-1")]);
    let network = json!({"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]});
    assert_eq!(networks(&template), BTreeMap::from([("webhook", &network)]));
}

#[test]
fn subnets_and_security_groups_are_given_together_or_not_at_all() {
    for (subnets, groups, objection) in [
        ("", "", None),
        ("subnet-1", "sg-1", None),
        ("subnet-1", "", Some("WebhookSubnetIds needs WebhookSecurityGroupIds")),
        ("", "sg-1", Some("WebhookSecurityGroupIds needs WebhookSubnetIds")),
    ] {
        let template = Template::with_parameters(&[(SUBNETS, subnets), (GROUPS, groups)]);
        assert_eq!(template.objections(), objection.as_slice(), "{subnets:?} {groups:?}");
    }
}

#[test]
fn a_build_makes_every_function_and_nothing_else() {
    let metadata = metadata();
    let folder = Path::new(metadata["workspace_root"].as_str().unwrap()).join("functions");
    let functions: BTreeSet<&str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| Path::new(package["manifest_path"].as_str().unwrap()).starts_with(&folder))
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    let built = metadata["metadata"]["lambda"]["build"]["packages"].as_array().unwrap();
    assert_eq!(built.iter().map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(), functions);
}

#[test]
fn watch_routes_as_the_gateway_does() {
    let router = metadata()["metadata"]["lambda"]["watch"]["router"].take();
    let router: BTreeMap<String, String> = serde_json::from_value(router).unwrap();
    let own = ROUTES.iter().filter(|route| route.function != DEFAULT).map(|route| (route.path, route.function));
    let expected = own.chain([("/", DEFAULT), ("/{*rest}", DEFAULT)]);
    assert_eq!(router, expected.map(|(path, function)| (path.to_owned(), function.to_owned())).collect());
}
