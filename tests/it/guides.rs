//! The guides: their code is that of programs that run, their examples are applied or refused as they say, their rules find
//! what they should.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use admin::webhooks::NewEndpoint;
use auth::KeyText;
use feed::{Rejection, parse};
use http::{HeaderMap, HeaderValue};
use regex::Regex;
use secrets::{EndpointSecret, service_signature, standard_signature};
use serde_json::{Value, json};
use tests::{DeadLetter, NOON, Receiver, SignatureValidity, Stack, Verifier, tables};
use types::clock::{Clock, SystemClock};
use types::event::EventKind;
use types::ids::UserId;
use types::timestamp::Timestamp;

const DOCS_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Returns the text of a file in `docs`.
fn read(path: &str) -> String {
    fs::read_to_string(format!("{DOCS_DIR}/{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the regions of a program by name, as `program: name`. The pieces of one region are joined by an empty
/// line.
fn regions(program: &str) -> BTreeMap<String, String> {
    let mut pieces = BTreeMap::<String, Vec<String>>::new();
    let text = read(program);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = remark(line).and_then(|remark| remark.strip_prefix("region: ")) else { continue };
        let piece: Vec<_> = lines.by_ref().take_while(|line| remark(line) != Some("endregion")).collect();
        pieces.entry(format!("{program}: {name}")).or_default().push(piece.join("\n").trim_matches('\n').to_owned());
    }
    pieces.into_iter().map(|(name, pieces)| (name, pieces.join("\n\n"))).collect()
}

/// Returns the text of a line that is a comment.
fn remark(line: &str) -> Option<&str> {
    line.strip_prefix("// ").or_else(|| line.strip_prefix("# "))
}

/// Returns the guide's blocks of code: the source that the comment before a block names, if any, its language, and
/// its text.
fn blocks(guide: &str) -> Vec<(Option<&str>, &str, String)> {
    let (mut blocks, mut before) = (Vec::new(), "");
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            let source = before.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            blocks.push((source, language, text.join("\n")));
        }
        before = line;
    }
    blocks
}

/// Asserts that all code of a guide in these languages is that of these programs. Each program must have
/// `regions_each` regions, and the guide must show all of them.
fn assert_shows(guide: &str, programs: &[&str], languages: &[&str], regions_each: usize) {
    let mut regions: BTreeMap<_, _> = programs.iter().flat_map(|program| regions(program)).collect();
    assert_eq!(regions.len(), regions_each * programs.len(), "{:?}", regions.keys());
    for (source, language, text) in blocks(guide) {
        assert_eq!(source.is_some(), languages.contains(&language), "a block of {language} from {source:?}");
        if let Some(source) = source {
            let region =
                regions.remove(source).unwrap_or_else(|| panic!("{source} is not a region, or is in the guide twice"));
            assert_eq!(text, region, "{source}");
        }
    }
    assert_eq!(regions.into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "only in the programs");
}

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

const ID: &str = "0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e";
const BODY: &str = r#"{"id":"0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e","event":"wallet.deposit","created_at":"2026-11-20T10:04:31.250Z","data":{ "name":"Ünï★" }}"#;
const NEITHER_VALID: SignatureValidity = SignatureValidity { service: false, standard: false };
const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };

fn secrets() -> [EndpointSecret; 2] {
    [7, 8].map(|bits| EndpointSecret::from_bits([bits; 32]))
}

fn now() -> Timestamp {
    SystemClock::new().now()
}

/// Returns the headers of an attempt. The first secret is the active one.
fn headers(secrets: &[EndpointSecret], sent_at: Timestamp) -> HeaderMap {
    let values = [
        ("x-service-signature", service_signature(&secrets[0], BODY.as_bytes())),
        ("webhook-id", ID.to_owned()),
        ("webhook-timestamp", sent_at.seconds().to_string()),
        ("webhook-signature", standard_signature(secrets, ID, sent_at, BODY.as_bytes())),
    ];
    values.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

async fn assert_all_say(expected: SignatureValidity, secret: &EndpointSecret, headers: &HeaderMap, body: &str) {
    for verifier in Verifier::ALL {
        let validity = verifier.verify(&secret.reveal(), headers, body.as_bytes()).await;
        assert_eq!(validity, expected, "{verifier:?} of {headers:?} and {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_sign_is_accepted_and_nothing_else() {
    let [secret, other] = secrets();
    let genuine = headers(std::slice::from_ref(&secret), now());
    assert_all_say(BOTH_VALID, &secret, &genuine, BODY).await;
    assert_all_say(NEITHER_VALID, &other, &genuine, BODY).await;
    for forged in [BODY.replace("deposit", "deposjt"), BODY.replace("{ ", "{"), format!("{BODY}\n"), String::new()] {
        assert_all_say(NEITHER_VALID, &secret, &genuine, &forged).await;
    }
    let of_other = headers(&[other], now());
    assert_all_say(NEITHER_VALID, &secret, &of_other, BODY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_and_missing_headers_are_refused() {
    let [secret, _] = secrets();
    let genuine = headers(std::slice::from_ref(&secret), now());
    for value in ["", "sha256=", "sha256=zz", "v1", "v1,", "v1,,", "v1,zz"] {
        let mut forged = genuine.clone();
        forged.insert("x-service-signature", HeaderValue::from_static(value));
        forged.insert("webhook-signature", HeaderValue::from_static(value));
        assert_all_say(NEITHER_VALID, &secret, &forged, BODY).await;
    }
    assert_all_say(NEITHER_VALID, &secret, &HeaderMap::new(), BODY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standard_header_alone_tells_an_old_attempt_and_another_id() {
    let [secret, _] = secrets();
    let service_alone = SignatureValidity { service: true, standard: false };
    let at = |millis| headers(std::slice::from_ref(&secret), now().plus_millis(millis));
    for (minutes, expected) in [(-6, service_alone), (-4, BOTH_VALID), (4, BOTH_VALID), (6, service_alone)] {
        assert_all_say(expected, &secret, &at(minutes * 60_000), BODY).await;
    }
    let mut renamed = at(0);
    renamed.insert("webhook-id", HeaderValue::from_static("1b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e"));
    assert_all_say(service_alone, &secret, &renamed, BODY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_secret_is_rotated_the_standard_header_suits_receivers_of_either() {
    let [old, next] = secrets();
    let rotating = headers(&[old.clone(), next.clone()], now());
    assert_all_say(BOTH_VALID, &old, &rotating, BODY).await;
    assert_all_say(SignatureValidity { service: false, standard: true }, &next, &rotating, BODY).await;
}

const GUIDE_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/feed.md");

/// An example of the guide for the feed.
struct GuideExample<'g> {
    /// The message on one line.
    text: String,
    /// The field and the reason, if the guide says that the message is refused.
    refusal: Option<(&'g str, &'g str)>,
}

fn read_feed_guide() -> String {
    fs::read_to_string(GUIDE_PATH).unwrap_or_else(|error| panic!("{GUIDE_PATH}: {error}"))
}

/// Returns the examples of the guide, in page order.
fn examples(guide: &str) -> Vec<GuideExample<'_>> {
    let (mut examples, mut lines) = (Vec::new(), guide.lines());
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let text = lines.by_ref().take_while(|line| *line != "```").map(str::trim_start).collect();
        match language {
            "json" => examples.push(GuideExample { text, refusal: None }),
            "json refused" => examples.push(GuideExample { text, refusal: Some(refusal(lines.next().unwrap())) }),
            _ => {}
        }
    }
    examples
}

fn refusal(line: &str) -> (&str, &str) {
    let documented = line.strip_prefix("Refused: `").and_then(|documented| documented.split_once("`: "));
    documented.unwrap_or_else(|| panic!("no field and reason in {line:?}"))
}

/// Returns the messages of the examples that must be applied.
fn applied(guide: &str) -> Vec<Value> {
    let applied = examples(guide).into_iter().filter(|example| example.refusal.is_none());
    applied.map(|example| serde_json::from_str(&example.text).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_is_applied_or_refused_as_the_guide_says() {
    let guide = read_feed_guide();
    let (stack, receiver) = (Stack::new().await, Receiver::answering(204).await);
    let events = applied(&guide).into_iter().filter(|message| message["type"] == "event");
    let accounts: BTreeSet<UserId> =
        events.map(|event| serde_json::from_value(event["account_id"].clone()).unwrap()).collect();
    for user_id in accounts {
        let new = NewEndpoint { user_id, url: receiver.url.clone(), events: EventKind::ALL.into() };
        stack.webhooks().add(new).await.unwrap();
    }
    let queue = stack.feed_queue();
    let _workers = stack.workers().await;
    let mut delivered = 0;
    for GuideExample { text, refusal } in examples(&guide) {
        let before = tables(&stack).await;
        queue.send(std::slice::from_ref(&text)).await;
        queue.wait_until_empty().await;
        let letters = queue.take_dead_letters().await;
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

/// Returns the names of the fields that a message may have, as the refusal of an unknown one lists them.
fn field_names(message: &Value) -> BTreeSet<String> {
    let mut message = message.clone();
    message["surprise"] = json!(1);
    let Rejection { reason, .. } = parse(&message.to_string(), NOON.parse().unwrap()).unwrap_err();
    let (_, expected) = reason.split_once(", expected ").unwrap_or_else(|| panic!("no field_names in {reason:?}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A field that no fixture has would be null in every golden file, and hardly tested at all.
#[test]
fn the_fixtures_have_every_field_of_their_type() {
    for message in tests::market(tests::uuid(1).into()) {
        let fields: BTreeSet<String> = message.as_object().unwrap().keys().cloned().collect();
        let accepted = field_names(&message);
        let absent: Vec<_> = accepted.difference(&fields).filter(|field| *field != "removed").collect();
        assert!(absent.is_empty(), "{absent:?} of {message}");
    }
}

const GUIDE: &str = include_str!("../../docs/operations.md");

/// Returns the regular expression of the rule for gitleaks.
fn pattern() -> Regex {
    let (_, rest) = GUIDE.split_once("regex = '''").unwrap();
    Regex::new(rest.split_once("'''").unwrap().0).unwrap()
}

/// Returns the key of these random bits.
fn random_key() -> KeyText {
    let bits = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
    KeyText::from_bits(bits.try_into().unwrap())
}

#[test]
fn the_rule_finds_every_key_wherever_it_stands_and_nothing_shorter_or_longer() {
    let pattern = pattern();
    for key in std::iter::repeat_with(random_key).take(1_000).chain([[0; 32], [0xff; 32]].map(KeyText::from_bits)) {
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
