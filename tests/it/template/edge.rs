//! The edge in front of the API: what it keeps, what it sends, and that nobody gets around it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use api::CacheControl;
use api::origin::{ORIGIN_HEADER, ORIGIN_VARIABLE};
use api::routes::{PUBLIC, ROUTES};
use common::ids::UserId;
use common::scope::Scope;
use serde_json::{Value, json};
use tests::{Client, HttpReply, PATHS, Stack, Template, balance, edge_resource, market, order, uuid};

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
fn the_edge_sends_the_secret_in_the_header_that_functions_read() {
    let origins = distribution()["Origins"].clone();
    let sent = json!([{
        "HeaderName": ORIGIN_HEADER,
        "HeaderValue": "{{resolve:secretsmanager:edge:SecretString:sent}}",
    }]);
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
fn an_api_with_a_host_name_of_its_own_has_no_other() {
    for (name, is_closed) in [("", false), ("api.example.com", true)] {
        let template = Template::with_parameters(&[("DomainName", name)]);
        let api = &template.resources("AWS::Serverless::HttpApi")["Api"];
        assert_eq!(api["Properties"]["DisableExecuteApiEndpoint"], is_closed, "{name:?}");
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

#[test]
fn the_firewall_refuses_in_the_error_envelope() {
    let firewall = edge_resource("Firewall");
    let rate = &firewall["Rules"][0]["Action"]["Block"]["CustomResponse"];
    let body = &firewall["CustomResponseBodies"][rate["CustomResponseBodyKey"].as_str().unwrap()];
    let envelope: Value = serde_json::from_str(body["Content"].as_str().unwrap()).unwrap();
    assert_eq!((&rate["ResponseCode"], &body["ContentType"]), (&json!(429), &json!("APPLICATION_JSON")));
    assert_eq!(envelope, json!({"error": {"code": "edge.too_many_requests", "params": {}}}));
}

/// A cache in front of the API that all callers share (RFC 9111), and that keeps whatever the answers allow. Its key is the
/// path, as at the edge.
struct SharedCache {
    client: Client,
    kept: Mutex<BTreeMap<String, HttpReply>>,
}

impl SharedCache {
    async fn get(&self, key: &str, path: &str) -> HttpReply {
        if let Some(kept) = self.kept.lock().unwrap().get(path) {
            return kept.clone();
        }
        let reply = self.client.get(key, path).await;
        let control = reply.header("cache-control");
        assert!(!control.is_empty(), "{path}");
        if !control.contains("no-store") && !control.contains("private") {
            self.kept.lock().unwrap().insert(path.to_owned(), reply.clone());
        }
        reply
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_callers_at_once_behind_a_shared_cache_get_their_own_answers() {
    let stack = Stack::new().await;
    let users = [uuid(5), uuid(6)].map(UserId::from);
    for user in users {
        stack.feed_outcomes(&market(user)).await;
    }
    let order_of_one = order(users[0], 77, "2026-11-20T10:00:00Z", 1);
    stack.feed(&[order_of_one, balance(users[0], "3.00", "4.00", "7.00", 9)]).await;
    let running = stack.instance().await;
    let cache = SharedCache { client: running.client.clone(), kept: Mutex::default() };
    let [one, other] = [stack.key_of(users[0], &Scope::ALL).await.0, stack.key_of(users[1], &Scope::ALL).await.0];
    let open = PUBLIC.map(|path| (path.to_owned(), None));
    for _ in 0..2 {
        for (path, _) in PATHS.iter().chain(&open) {
            let (first, second, nobody) =
                tokio::join!(cache.get(&one, path), cache.get(&other, path), cache.get("nobody", path));
            let (own, others) = (running.client.get(&one, path).await, running.client.get(&other, path).await);
            assert_eq!((&first.bytes, &second.bytes), (&own.bytes, &others.bytes), "{path}");
            assert_eq!(nobody.status, if PUBLIC.contains(&path.as_str()) { 200 } else { 401 }, "{path}");
        }
        for path in ["/v1/public/me", "/v1/public/orders", "/v1/public/wallet/balance"] {
            let (first, second) = tokio::join!(cache.get(&one, path), cache.get(&other, path));
            assert_ne!(first.bytes, second.bytes, "{path}");
        }
    }
    let kept: BTreeSet<String> = cache.kept.lock().unwrap().keys().cloned().collect();
    assert_eq!(kept, PUBLIC.map(str::to_owned).into());
}
