//! Compares the template's routes with the project's.

use std::collections::BTreeSet;

use api::routes::{DEFAULT, ROUTES};
use serde_json::json;
use tests::Template;

#[test]
fn the_domain_can_be_reached_by_each_kind_of_address_that_its_record_names() {
    let template = Template::read();
    let groups = template.resources("AWS::Route53::RecordSetGroup");
    let records = groups["ApiDomainRecord"]["Properties"]["RecordSets"].as_array().unwrap();
    assert_eq!(records.iter().map(|record| record["Type"].as_str().unwrap()).collect::<Vec<_>>(), ["A", "AAAA"]);
    let domains = template.resources("AWS::ApiGatewayV2::DomainName");
    let configurations = &domains["ApiDomain"]["Properties"]["DomainNameConfigurations"];
    assert_eq!(configurations[0]["IpAddressType"], "dualstack");
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
