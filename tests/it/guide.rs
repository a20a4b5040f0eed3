//! Tests the guide for webhook receivers (`docs/webhooks.md`): its code is the code of its programs, and its example is
//! signed as we sign.

use std::collections::{BTreeMap, BTreeSet};

use secrets::{EndpointSecret, service_signature, standard_signature};
use serde_json::Value;
use types::timestamp::Timestamp;

use crate::guide_code::{assert_shows, blocks, read};

const PROGRAMS: [&str; 4] = ["webhooks/verify.py", "webhooks/verify.mjs", "webhooks/verify.go", "webhooks/verify.rs"];
const LANGUAGES: [&str; 4] = ["python", "js", "go", "rust"];

#[test]
fn the_guides_code_is_that_of_its_programs() {
    assert_shows(&read("webhooks.md"), &PROGRAMS, &LANGUAGES, 1);
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
