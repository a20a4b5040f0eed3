//! The probe, which asks from outside whether the API answers. It can send no key and no headers.

use std::collections::BTreeSet;

use api::routes::DESCRIPTION;
use serde_json::json;
use tests::monitoring::{WatchedMetric, probe_alarms, probe_properties};
use tests::{Stack, Template};

/// Route 53 looks for the text only in this much of a body. Taken from AWS's documentation.
const SEARCHED_BYTES: usize = 5_120;

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_finds_what_it_looks_for_on_a_route_that_needs_no_key() {
    let check = probe_properties("HealthCheck")["HealthCheckConfig"].clone();
    assert_eq!(
        (&check["Type"], &check["Port"], &check["EnableSNI"]),
        (&json!("HTTPS_STR_MATCH"), &json!(443), &json!(true))
    );
    assert_eq!(check["ResourcePath"], DESCRIPTION.path);
    assert_eq!(DESCRIPTION.budget, None);
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let reply = running.client.send("GET", DESCRIPTION.path, &[]).await;
    assert_eq!(reply.status, 200);
    let searched = String::from_utf8_lossy(&reply.bytes[..SEARCHED_BYTES.min(reply.bytes.len())]);
    assert!(searched.contains(check["SearchString"].as_str().unwrap()), "{searched}");
}

#[test]
fn the_probe_fires_if_its_health_check_fails_or_reports_nothing() {
    let status = WatchedMetric {
        namespace: "AWS/Route53".to_owned(),
        metric: "HealthCheckStatus".to_owned(),
        resource: ("HealthCheckId".to_owned(), "HealthCheck".to_owned()),
        label: None,
    };
    let alarms = probe_alarms();
    assert_eq!(alarms.len(), 1);
    assert_eq!(alarms[0].watched, BTreeSet::from([status]));
    let alarm = probe_properties("Probe");
    // The metric is 1 while the API answers, and 0 otherwise.
    assert_eq!((&alarm["Statistic"], &alarm["Threshold"]), (&json!("Minimum"), &json!(1)));
    assert_eq!(alarm["ComparisonOperator"], "LessThanThreshold");
    assert_eq!(alarm["TreatMissingData"], "breaching");
    assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&json!(["TopicArn"]), &json!(["TopicArn"])));
}

#[test]
fn the_service_brings_no_probe_of_its_own() {
    let nested = Template::read().resources("AWS::CloudFormation::Stack");
    assert!(nested.contains_key("ApiAlarms"));
    for (id, stack) in nested {
        assert_ne!(stack["Properties"]["TemplateURL"], "infra/monitoring/probe.yaml", "{id}");
    }
}
