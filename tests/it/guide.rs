//! Tests the guide for webhook receivers (`docs/webhooks.md`): its code is the code of its programs, its example is
//! signed as we sign, and its events are those of the API description.

use std::collections::{BTreeMap, BTreeSet};

use secrets::{EndpointSecret, service_signature, standard_signature};
use serde_json::Value;
use tests::Stack;
use types::event::EventKind;
use types::timestamp::Timestamp;

use crate::guide_code::{assert_shows, blocks, read};

const PROGRAMS: [&str; 4] = ["webhooks/verify.py", "webhooks/verify.mjs", "webhooks/verify.go", "webhooks/verify.rs"];
const LANGUAGES: [&str; 4] = ["python", "js", "go", "rust"];

#[test]
fn the_guides_code_is_that_of_its_programs() {
    assert_shows(&read("webhooks.md"), &PROGRAMS, &LANGUAGES, 2);
}

#[test]
fn receivers_need_no_tool_of_the_operators() {
    let guide = read("webhooks.md");
    let (for_receivers, for_operators) = guide.split_once("\n## A stack of your own\n").unwrap();
    assert!(!for_receivers.contains("marketctl"));
    assert!(for_operators.contains("webhooks add --user"));
}

#[test]
fn the_guides_example_is_signed_as_we_sign() {
    let guide = read("webhooks.md");
    let headers: BTreeMap<String, String> = serde_json::from_str(&read("webhooks/example/headers.json")).unwrap();
    let body = read("webhooks/example/body.json");
    let secret = guide.split('`').find(|text| text.starts_with("whsec_A")).unwrap();
    let secret = EndpointSecret::parse(secret).unwrap();
    let envelope: Value = serde_json::from_str(&body).unwrap();
    let [id, event] = ["id", "event"].map(|name| envelope[name].as_str().unwrap());
    let sent_at = Timestamp::from_millis(headers["X-Service-Timestamp"].parse::<i64>().unwrap() * 1_000);

    let expected = [
        ("Content-Type", "application/json".to_owned()),
        ("X-Service-Delivery-Id", id.to_owned()),
        ("X-Service-Event", event.to_owned()),
        ("X-Service-Signature", service_signature(&secret, body.as_bytes())),
        ("X-Service-Timestamp", sent_at.seconds().to_string()),
        ("webhook-id", id.to_owned()),
        ("webhook-signature", standard_signature([&secret], id, sent_at, body.as_bytes())),
        ("webhook-timestamp", sent_at.seconds().to_string()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)).into());

    let request = blocks(&guide).into_iter().find(|(_, language, _)| *language == "http").unwrap().2;
    let (head, shown) = request.split_once("\n\n").unwrap();
    assert_eq!(shown, body);
    let documented: BTreeSet<_> = head.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(documented, headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect());
}

/// Returns the fields of each event in the guide's table, with `?` after optional ones.
fn documented(guide: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let events = rows.filter(|(event, _)| event.contains('.'));
    let fields = |row: &str| {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap().to_owned();
        cell.split(", ").map(|field| field.replace('`', "")).collect()
    };
    events.map(|(event, row)| (event.to_owned(), fields(row))).collect()
}

/// Returns the fields in the schema of an event's data, with `?` after optional ones.
fn described(document: &Value, operation: &Value) -> BTreeSet<String> {
    let schema = |at: &Value| document.pointer(at["$ref"].as_str().unwrap().trim_start_matches('#')).unwrap();
    let envelope = schema(&operation["post"]["requestBody"]["content"]["application/json"]["schema"]);
    let data = schema(&envelope["properties"]["data"]);
    let required = data["required"].as_array().unwrap();
    let field =
        |name: &String| if required.contains(&name.as_str().into()) { name.clone() } else { format!("{name}?") };
    data["properties"].as_object().unwrap().keys().map(field).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_events_are_those_of_the_description() {
    let stack = Stack::new().await;
    let document = stack.instance().await.client.send("GET", "/v1/openapi.json", &[]).await.json();
    let events = document["webhooks"].as_object().unwrap().iter();
    let described: BTreeMap<_, _> =
        events.map(|(event, operation)| (event.clone(), described(&document, operation))).collect();
    assert_eq!(described.len(), EventKind::ALL.len());
    assert_eq!(documented(&read("webhooks.md")), described);
}
