//! The edge in front of the API: what it keeps, what it sends, and that nobody gets around it.

use std::collections::BTreeSet;

use api::CacheControl;
use api::origin::{ORIGIN_HEADER, ORIGIN_VARIABLE, PUBLIC_HOST_HEADER};
use api::routes::{PUBLIC, ROUTES};
use serde_json::{Value, json};
use tests::{Template, edge_resource};

/// AWS's cache policy `CachingDisabled`.
const CACHING_DISABLED: &str = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad";
/// AWS's origin request policy `AllViewerExceptHostHeader`.
const ALL_VIEWER_EXCEPT_HOST: &str = "b689b0a8-53d0-40ab-baf2-68738e2966ac";

fn distribution() -> Value {
    edge_resource("Distribution")["DistributionConfig"].clone()
}

#[test]
fn the_edge_keeps_the_public_documents_and_nothing_else() {
    let distribution = distribution();
    let default = &distribution["DefaultCacheBehavior"];
    assert_eq!(default["CachePolicyId"], CACHING_DISABLED);
    assert_eq!(default["OriginRequestPolicyId"], ALL_VIEWER_EXCEPT_HOST);
    let mut kept = BTreeSet::new();
    for behavior in distribution["CacheBehaviors"].as_array().unwrap() {
        let path = behavior["PathPattern"].as_str().unwrap();
        assert!(!path.contains(['*', '?']), "{path} is a pattern");
        assert_eq!(
            (&behavior["CachePolicyId"], &behavior["OriginRequestPolicyId"]),
            (&json!("PublicDocuments"), &Value::Null)
        );
        kept.insert(path.to_owned());
    }
    assert_eq!(kept, PUBLIC.map(str::to_owned).into());
    let mut public = ROUTES.iter().filter(|route| route.cache == CacheControl::Public);
    assert!(public.all(|route| kept.contains(route.path)));
    let policy = &edge_resource("PublicDocuments")["CachePolicyConfig"];
    let key = &policy["ParametersInCacheKeyAndForwardedToOrigin"];
    assert_eq!((&policy["MaxTTL"], &policy["DefaultTTL"]), (&json!(300), &json!(0)));
    let in_key = [
        &key["CookiesConfig"]["CookieBehavior"],
        &key["HeadersConfig"]["HeaderBehavior"],
        &key["QueryStringsConfig"]["QueryStringBehavior"],
    ];
    assert_eq!(in_key, ["none"; 3]);
}

#[test]
fn the_edge_keeps_no_error_of_one_caller_for_another() {
    let kept = distribution()["CustomErrorResponses"].as_array().unwrap().clone();
    for status in [400, 403, 404, 405, 414, 500, 501, 502, 503, 504] {
        assert!(kept.contains(&json!({"ErrorCode": status, "ErrorCachingMinTTL": 0})), "{status}");
    }
}

#[test]
fn the_edge_sends_the_secret_and_its_name_in_the_headers_that_functions_read() {
    let origins = distribution()["Origins"].clone();
    let sent = json!([
        {"HeaderName": ORIGIN_HEADER, "HeaderValue": "{{resolve:secretsmanager:edge:SecretString:sent}}"},
        {"HeaderName": PUBLIC_HOST_HEADER, "HeaderValue": "api.example.com"},
    ]);
    assert_eq!(origins.as_array().unwrap().len(), 1);
    assert_eq!((&origins[0]["OriginCustomHeaders"], &origins[0]["DomainName"]), (&sent, &json!("origin.example.com")));
}

#[test]
fn every_function_of_the_api_and_no_other_reads_the_accepted_secrets() {
    // The blank keeps the API closed if nothing is accepted: functions without secrets check nothing.
    for (name, accepted) in [("", ""), ("edge", " {{resolve:secretsmanager:edge:SecretString:accepted}}")] {
        for (function, deployed) in &Template::with_parameters(&[("OriginSecret", name)]).functions {
            let value = deployed.properties["Environment"]["Variables"].get(ORIGIN_VARIABLE);
            let expected = deployed.is_triggered_by("HttpApi").then(|| json!(accepted));
            assert_eq!(value, expected.as_ref(), "{function}");
        }
    }
}

#[test]
fn the_edge_has_a_name_of_its_own_for_the_api_and_no_addresses_that_the_firewall_cannot_count() {
    assert_eq!(distribution()["IPV6Enabled"], false);
    let origin = Template::with_parameters(&[
        ("OriginName", "o-5f2c.example.com"),
        ("CertificateArn", "arn:aws:acm:us-east-1:000000000000:certificate/0"),
        ("OriginSecret", "edge"),
    ]);
    assert_eq!(origin.resources("AWS::Serverless::HttpApi")["Api"]["Properties"]["DisableExecuteApiEndpoint"], true);
    assert_eq!(origin.objections(), [""; 0]);
    let without = Template::with_parameters(&[("OriginSecret", "edge")]);
    assert_eq!(without.objections().len(), 1, "{:?}", without.objections());
    let domains = origin.resources("AWS::ApiGatewayV2::DomainName");
    assert_eq!(domains["OriginDomain"]["Properties"]["DomainName"], "o-5f2c.example.com");
}
