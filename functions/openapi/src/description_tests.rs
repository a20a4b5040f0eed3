use std::sync::Arc;

use aws_lambda_events::encodings::Body;
use serde_json::{Value, json};
use types::clock::ManualClock;
use types::timestamp::Timestamp;

use super::*;

fn function() -> Description {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(45_000)));
    Description::new(Origin::default(), clock, Arc::default())
}

fn request(method: &str, path: &str) -> GatewayEvent {
    let mut event = GatewayEvent::default();
    event.raw_path = Some(path.to_owned());
    event.request_context.http.method = method.parse().unwrap();
    event.request_context.request_id = Some("JKJaXmPLvHcESHA=".to_owned());
    event
}

async fn answer(method: &str, path: &str) -> Response {
    function().handle(request(method, path)).await
}

fn json_of(response: &Response) -> Value {
    let Some(Body::Text(text)) = &response.body else { panic!("no text") };
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn the_description_is_served_to_anybody() {
    let response = answer("GET", "/v1/openapi.json").await;
    assert_eq!(response.status_code, 200);
    assert_eq!(json_of(&response)["openapi"], "3.1.0");
    let headers = &response.headers;
    assert_eq!(headers["content-type"], "application/json; charset=utf-8");
    assert_eq!(headers["cache-control"], "public, max-age=300");
    assert_eq!(headers["x-request-id"], "JKJaXmPLvHcESHA=");
    let rate = ["limit", "remaining", "reset"].map(|name| headers[format!("x-ratelimit-{name}")].clone());
    assert_eq!(rate, ["0", "0", "15"]);
    assert!(headers.contains_key("etag") && headers["vary"] == "Accept-Encoding");
}

#[tokio::test]
async fn the_docs_page_is_served_as_html() {
    let response = answer("GET", "/docs").await;
    assert_eq!(response.status_code, 200);
    assert_eq!(response.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(response.headers["cache-control"], "public, max-age=300");
    assert!(matches!(&response.body, Some(Body::Text(page)) if page.starts_with("<!DOCTYPE html>")));
}

#[tokio::test]
async fn the_docs_page_says_what_it_may_do_and_a_304_repeats_it() {
    let page = answer("GET", "/docs").await;
    let mut again = request("GET", "/docs");
    again.headers.insert("if-none-match", page.headers["etag"].clone());
    let unchanged = function().handle(again).await;
    assert_eq!(unchanged.status_code, 304);
    for (name, part) in [
        ("content-security-policy", "default-src 'none'; script-src 'sha256-"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert!(page.headers[name].to_str().unwrap().starts_with(part), "{name}");
        assert_eq!(unchanged.headers[name], page.headers[name]);
    }
    // What is no page needs none of them.
    for path in ["/v1/openapi.json", "/nowhere"] {
        assert!(!answer("GET", path).await.headers.contains_key("content-security-policy"), "{path}");
    }
}

#[tokio::test]
async fn head_has_no_body_and_a_known_tag_is_304() {
    for path in PUBLIC {
        let head = answer("HEAD", path).await;
        assert_eq!((head.status_code, head.body.is_none()), (200, true));
        let mut again = request("GET", path);
        again.headers.insert("if-none-match", head.headers["etag"].clone());
        assert_eq!(function().handle(again).await.status_code, 304);
    }
}

#[tokio::test]
async fn another_method_is_405_on_a_known_path() {
    for path in PUBLIC {
        let response = answer("POST", path).await;
        assert_eq!((response.status_code, &response.headers["allow"]), (405, &"GET, HEAD".parse().unwrap()));
        let body = json!({"error": {"code": "routes.method_not_allowed", "params": {"method": "POST"}}});
        assert_eq!(json_of(&response), body);
    }
}

#[tokio::test]
async fn any_other_path_is_404_whatever_the_method() {
    for path in ["/", "", "/v1", "/v1/openapi.json/", "/docs/", "/V1/openapi.json", "/v1/public/items/", "/%2e"] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let response = answer(method, path).await;
            assert_eq!(response.status_code, 404, "{method} {path}");
            assert_eq!(json_of(&response), json!({"error": {"code": "routes.not_found", "params": {}}}));
            assert_eq!(response.headers["cache-control"], "no-store");
            assert!(!response.headers.contains_key("allow"));
        }
    }
}
