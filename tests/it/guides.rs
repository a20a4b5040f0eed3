//! The guides: their code is that of programs that run, their examples are applied or refused as they say, their rules find
//! what they should.

use common::resources::Queue;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::repeat_with;
use std::slice;

use admin::webhooks::NewEndpoint;
use api::auth::KeyText;
use common::clock::{Clock, SystemClock};
use common::event::EventKind;
use common::ids::{EventId, UserId};
use common::timestamp::Timestamp;
use feed::{Rejection, parse};
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue};
use regex::Regex;
use serde_json::{Value, json};
use tests::{DeadLetter, NOON, Receiver, SignatureValidity, Stack, Verifier, market, sale, tables, to_loopback};
use webhooks::secrets::{EndpointSecret, service_signature, standard_signature};

/// Returns the text of a file in `docs`.
fn read(path: &str) -> String {
    let path = format!("{}/../docs/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the parts of a program that its guide shows, joined by an empty line: what stands between the remarks
/// `region: …`, with this name, and `endregion`.
fn shown_part(program: &str, name: &str) -> String {
    let start = format!("region: {name}\n");
    let regions = program.split(start.as_str()).skip(1);
    let parts = regions.map(|rest| rest.split_once("endregion").unwrap().0.trim_end_matches(['/', '#', ' ']));
    parts.map(|part| part.trim_matches('\n')).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn the_guides_code_is_that_of_their_programs() {
    for (guide, program, language, shown) in [
        ("webhooks.md", "webhooks/verify.py", "python", &["plain", "library"][..]),
        ("webhooks.md", "webhooks/verify.mjs", "js", &["plain"]),
        ("webhooks.md", "webhooks/verify.go", "go", &["plain"]),
        ("webhooks.md", "webhooks/verify.rs", "rust", &["plain"]),
        ("clients.md", "clients/walk.py", "python", &["plain"]),
    ] {
        let (guide, program) = (read(guide), read(program));
        let fence = format!("```{language}\n");
        let blocks = guide.split(fence.as_str()).skip(1);
        let blocks: Vec<_> = blocks.map(|rest| rest.split_once("\n```").unwrap().0).collect();
        assert_eq!(blocks, shown.iter().map(|name| shown_part(&program, name)).collect::<Vec<_>>());
    }
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
        ("X-Service-Event-Id", headers["X-Service-Event-Id"].parse::<EventId>().unwrap().to_string()),
        ("X-Service-Signature", service_signature(&secret, body.as_bytes())),
        ("X-Service-Timestamp", sent_at.seconds().to_string()),
        ("webhook-id", id.to_owned()),
        ("webhook-signature", standard_signature([&secret], id, sent_at, body.as_bytes())),
        ("webhook-timestamp", sent_at.seconds().to_string()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)).into());

    let (_, request) = guide.split_once("```http\n").unwrap();
    let (head, shown) = request.split_once("\n```").unwrap().0.split_once("\n\n").unwrap();
    assert_eq!(shown, body);
    let documented: BTreeSet<_> = head.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(documented, headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect());
}

const ID: &str = "0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e";
const BODY: &str = r#"{"id":"0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e","event":"wallet.deposit","created_at":"2026-11-20T10:04:31.250Z","data":{ "name":"Ünï★" }}"#;
const NEITHER_VALID: SignatureValidity = SignatureValidity { service: false, standard: false };
const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };

fn secrets() -> [EndpointSecret; 2] {
    [7, 8].map(|bits| EndpointSecret::from_bits([bits; 32]))
}

/// Returns the headers of an attempt. `millis` tells how long after now it is sent. The first secret is the active one.
fn headers(secrets: &[EndpointSecret], millis: i64) -> HeaderMap {
    let sent_at = SystemClock::new().now().plus_millis(millis);
    let values = [
        ("x-service-signature", service_signature(&secrets[0], BODY.as_bytes())),
        ("webhook-id", ID.to_owned()),
        ("webhook-timestamp", sent_at.seconds().to_string()),
        ("webhook-signature", standard_signature(secrets, ID, sent_at, BODY.as_bytes())),
    ];
    values.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

/// Runs the guide's program in each language on a delivery, and asserts what it says.
async fn assert_all_say(expected: SignatureValidity, secret: &EndpointSecret, headers: &HeaderMap, body: &str) {
    let secret = secret.reveal();
    let said = join_all(Verifier::ALL.map(|verifier| verifier.verify(&secret, headers, body.as_bytes()))).await;
    assert_eq!(said, [expected; Verifier::ALL.len()], "{:?} of {headers:?} and {body}", Verifier::ALL);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_send_is_accepted_and_nothing_else() {
    let (stack, receiver, user) = (Stack::new().await, Receiver::answering(204).await, tests::uuid(5).into());
    let (_, secret) = stack.endpoint(user, &receiver.url).await;
    let _workers = stack.workers_in_real_time(to_loopback(1)).await;
    stack.queue(Queue::Feed).send(&[sale(1, user).to_string()]).await;
    let post = &receiver.received(1).await[0];
    let (genuine, body) = (&post.headers, str::from_utf8(&post.body).unwrap());
    assert_all_say(BOTH_VALID, &secret, genuine, body).await;
    assert_all_say(NEITHER_VALID, &secrets()[0], genuine, body).await;
    for forged in [body.replace("12.50", "12.51"), body.replace("{\"", "{ \""), format!("{body}\n"), String::new()] {
        assert_ne!(forged, body);
        assert_all_say(NEITHER_VALID, &secret, genuine, &forged).await;
    }
    for value in ["", "sha256=", "sha256=zz", "v1", "v1,", "v1,,", "v1,zz"] {
        let mut forged = genuine.clone();
        forged.insert("x-service-signature", HeaderValue::from_static(value));
        forged.insert("webhook-signature", HeaderValue::from_static(value));
        assert_all_say(NEITHER_VALID, &secret, &forged, body).await;
    }
    assert_all_say(NEITHER_VALID, &secret, &HeaderMap::new(), body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standard_header_alone_tells_an_old_attempt_and_another_id_and_suits_receivers_of_a_next_secret() {
    let [secret, next] = secrets();
    let service_alone = SignatureValidity { service: true, standard: false };
    let at = |minutes: i64| headers(slice::from_ref(&secret), minutes * 60_000);
    for (minutes, expected) in [(-6, service_alone), (-4, BOTH_VALID), (4, BOTH_VALID), (6, service_alone)] {
        assert_all_say(expected, &secret, &at(minutes), BODY).await;
    }
    let mut renamed = at(0);
    renamed.insert("webhook-id", HeaderValue::from_static("1b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e"));
    assert_all_say(service_alone, &secret, &renamed, BODY).await;

    let rotating = headers(&[secret.clone(), next.clone()], 0);
    assert_all_say(BOTH_VALID, &secret, &rotating, BODY).await;
    assert_all_say(SignatureValidity { service: false, standard: true }, &next, &rotating, BODY).await;
}

/// Returns the examples of the guide for the feed, in page order: the message on one line, and its field and reason if the
/// guide says that it is refused.
fn examples(guide: &str) -> Vec<(String, Option<(&str, &str)>)> {
    let (mut examples, mut lines) = (Vec::new(), guide.lines());
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let text = lines.by_ref().take_while(|line| *line != "```").map(str::trim_start).collect();
        match language {
            "json" => examples.push((text, None)),
            "json refused" => {
                let line = lines.next().unwrap();
                let refusal = line.strip_prefix("Refused: `").and_then(|documented| documented.split_once("`: "));
                examples.push((text, Some(refusal.unwrap_or_else(|| panic!("no field and reason in {line:?}")))));
            }
            _ => {}
        }
    }
    examples
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_is_applied_or_refused_as_the_guide_says() {
    let guide = read("feed.md");
    let (stack, receiver) = (Stack::new().await, Receiver::answering(204).await);
    let applied = examples(&guide).into_iter().filter(|(_, refusal)| refusal.is_none());
    let applied = applied.map(|(text, _)| serde_json::from_str::<Value>(&text).unwrap());
    let accounts: BTreeSet<UserId> = applied
        .filter(|message| message["type"] == "event")
        .map(|event| serde_json::from_value(event["account_id"].clone()).unwrap())
        .collect();
    for user_id in accounts {
        let new = NewEndpoint { user_id, url: receiver.url.clone(), events: EventKind::ALL.into() };
        stack.webhooks().add(new).await.unwrap();
    }
    let queue = stack.queue(Queue::Feed);
    let _workers = stack.workers().await;
    let mut delivered = 0;
    for (text, refusal) in examples(&guide) {
        let before = tables(&stack).await;
        queue.send(slice::from_ref(&text)).await;
        queue.wait_until_empty().await;
        let letters = stack.queue(Queue::FeedDead).take_all_letters().await;
        if let Some((field, reason)) = refusal {
            let attributes = [("field", field), ("reason", reason)];
            let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            assert_eq!(letters, [DeadLetter { body: text, attributes }]);
            continue;
        }
        assert_eq!(letters, [], "{text} is refused");
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["type"] == "event" {
            delivered += 1;
            let body = receiver.received(delivered).await[delivered - 1].json();
            assert_eq!((&body["event"], &body["data"]), (&message["event"], &message["data"]));
        } else {
            assert_ne!(tables(&stack).await, before, "{text} changes nothing");
        }
    }
}

/// A field that no fixture has would be null in the golden file, and hardly tested at all.
#[test]
fn the_fixtures_have_every_field_of_their_type() {
    for mut message in market(tests::uuid(1).into()) {
        let fields: BTreeSet<String> = message.as_object().unwrap().keys().cloned().collect();
        message["surprise"] = json!(1);
        // The refusal of an unknown field lists those that a message may have.
        let Rejection { reason, .. } = parse(&message.to_string(), NOON.parse().unwrap()).unwrap_err();
        let (_, expected) = reason.split_once(", expected ").unwrap_or_else(|| panic!("no fields in {reason:?}"));
        let accepted: BTreeSet<_> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let absent: Vec<_> = accepted.difference(&fields).filter(|field| *field != "removed").collect();
        assert!(absent.is_empty(), "{absent:?} of {message}");
    }
}

/// The rule is the regular expression for gitleaks.
#[test]
fn the_rule_finds_every_key_wherever_it_stands_and_nothing_shorter_or_longer() {
    let guide = read("operations.md");
    let (_, rest) = guide.split_once("regex = '''").unwrap();
    let pattern = Regex::new(rest.split_once("'''").unwrap().0).unwrap();
    let random = || {
        let bits = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
        KeyText::from_bits(bits.try_into().unwrap())
    };
    for key in repeat_with(random).take(1_000).chain([[0; 32], [0xff; 32]].map(KeyText::from_bits)) {
        let key = key.reveal();
        for text in [key, &format!("API_KEY=\"{key}\""), &format!("Authorization: Bearer {key}\nHost: example.com")] {
            let found: Vec<&str> = pattern.captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect();
            assert_eq!(found, [key]);
        }
        for text in [&key[..51], &format!("{key}0"), &format!("a{key}")] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }
}
