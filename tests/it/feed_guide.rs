//! Tests the guide for systems that write into the feed (`docs/feed.md`). Its examples are sent through a real stack,
//! and its tables are compared with what the parser accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use admin::webhooks::NewEndpoint;
use feed::{MAX_MESSAGE_BYTES, Rejection, parse};
use serde_json::{Value, json};
use tests::{DeadLetter, NOON, Receiver, Stack, tables};
use types::event::EventKind;
use types::ids::UserId;

const GUIDE_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/feed.md");
const TYPES: [&str; 7] = ["marketplace", "item", "quote", "listing", "order", "balance", "event"];

/// An example of the guide.
struct GuideExample<'g> {
    /// The message on one line.
    text: String,
    /// The field and the reason, if the guide says that the message is refused.
    refusal: Option<(&'g str, &'g str)>,
}

fn guide() -> String {
    fs::read_to_string(GUIDE_PATH).unwrap_or_else(|error| panic!("{GUIDE_PATH}: {error}"))
}

/// Returns the examples of the guide, or of a section of it, in page order.
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

/// Returns the text below a third-level heading.
fn section<'g>(guide: &'g str, heading: &str) -> &'g str {
    let (_, below) = guide.split_once(&format!("\n### {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    below.split("\n#").next().unwrap()
}

/// Returns the first example of a type's section.
fn example(guide: &str, of_type: &str) -> Value {
    applied(section(guide, &format!("`{of_type}`"))).remove(0)
}

/// Returns the cells of each table row that has `N` columns and code in the first one.
fn rows<const N: usize>(section: &str) -> Vec<[&str; N]> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    cells.filter_map(|cells| cells.try_into().ok()).collect()
}

fn code(cell: &str) -> &str {
    cell.trim_matches('`').trim()
}

/// Sets a field of a message, or removes it if there is no value.
fn with(message: &Value, pointer: &str, value: Option<Value>) -> Value {
    let (mut message, (parent, name)) = (message.clone(), pointer.rsplit_once('/').unwrap());
    let fields = message.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
    message
}

/// Returns why a message is refused at noon, or `None` if it is accepted.
fn rejection(text: &str) -> Option<Rejection> {
    parse(text, NOON.parse().unwrap()).err()
}

/// Returns the field for which a message is refused, or `None` if it is accepted.
fn refused_field(message: &Value) -> Option<String> {
    rejection(&message.to_string()).map(|rejection| rejection.field)
}

/// Returns the names that the object at this place may have, as the refusal of an unknown one lists them.
fn names(message: &Value, parent: &str) -> BTreeSet<String> {
    let more = with(message, &format!("{parent}/surprise"), Some(json!(1))).to_string();
    let Rejection { reason, .. } = rejection(&more).expect("an unknown field to be refused");
    let (_, expected) = reason.split_once(", expected ").unwrap_or_else(|| panic!("no names in {reason:?}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_is_applied_or_refused_as_the_guide_says() {
    let guide = guide();
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

#[test]
fn each_type_and_each_event_has_an_example() {
    let messages = applied(&guide());
    let types: BTreeSet<_> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(types, TYPES.into());
    let events: BTreeSet<_> = messages.iter().filter_map(|message| message["event"].as_str()).collect();
    assert_eq!(events, EventKind::ALL.map(EventKind::as_str).into());
}

#[test]
fn the_tables_name_each_field_and_say_whether_it_is_required() {
    let guide = guide();
    for of_type in TYPES {
        let example = example(&guide, of_type);
        let mut documented = BTreeMap::<String, BTreeSet<String>>::new();
        for [field, _, needed, _] in rows::<4>(section(&guide, &format!("`{of_type}`"))) {
            let pointer = format!("/{}", code(field).replace("[].", "/0/"));
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            documented.entry(parent.to_owned()).or_default().insert(name.to_owned());

            let (absent, null) = match needed {
                "required" => (false, false),
                "optional" => (true, false),
                "optional or null" => (true, true),
                other => panic!("{field} of {of_type} is {other:?}"),
            };
            let refused = Some(code(field).replace("[]", "[0]"));
            for (value, accepted) in [(None, absent), (Some(Value::Null), null)] {
                let message = with(&example, &pointer, value);
                assert_eq!(refused_field(&message), refused.clone().filter(|_| !accepted), "{message}");
            }
        }
        for (parent, documented) in documented {
            assert_eq!(documented, names(&example, &parent), "the fields of {of_type}{parent}");
        }
    }
}

#[test]
fn the_table_of_events_names_the_fields_of_their_data() {
    let guide = guide();
    let rows = rows::<3>(section(&guide, "`event`"));
    for event in applied(&guide).into_iter().filter(|message| message["type"] == "event") {
        let kind = event["event"].as_str().unwrap();
        let [_, _, fields] = rows.iter().find(|[name, ..]| code(name) == kind).unwrap();
        let documented: Vec<_> =
            fields.split(", ").map(|field| (code(field.trim_end_matches('?')), field.ends_with('?'))).collect();
        let documented_names: BTreeSet<_> = documented.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(documented_names, names(&event, "/data"), "{kind}");
        for (name, optional) in documented {
            for value in [None, Some(Value::Null)] {
                let refused = (!optional).then(|| format!("data.{name}"));
                assert_eq!(refused_field(&with(&event, &format!("/data/{name}"), value)), refused, "{name} of {kind}");
            }
        }
    }
}

/// A field that no fixture has would be null in every golden file, and hardly tested at all.
#[test]
fn the_fixtures_have_every_field_of_their_type() {
    for message in tests::market(tests::uuid(1).into()) {
        let fields: BTreeSet<String> = message.as_object().unwrap().keys().cloned().collect();
        let accepted = names(&message, "");
        let absent: Vec<_> = accepted.difference(&fields).filter(|field| *field != "removed").collect();
        assert!(absent.is_empty(), "{absent:?} of {message}");
    }
}

/// Returns messages that break one rule each, one for every reason that the guide lists.
fn broken(guide: &str) -> Vec<String> {
    let set = |of_type: &str, pointer: &str, value| with(&example(guide, of_type), pointer, Some(value)).to_string();
    let times = |of_type: &str, pointer: &str, count: usize| {
        let first = example(guide, of_type).pointer(pointer).unwrap()[0].clone();
        set(of_type, pointer, json!(vec![first; count]))
    };
    let data = |event: &str, name: &str, value: Value| {
        let example = applied(guide).into_iter().find(|message| message["event"] == event).unwrap();
        with(&example, &format!("/data/{name}"), Some(value)).to_string()
    };
    let balance = example(guide, "balance").to_string();
    vec![
        set("item", "/name", json!("x".repeat(MAX_MESSAGE_BYTES))),
        format!("{balance}{balance}"),
        format!("[{balance}]"),
        set("item", "/type", json!("gossip")),
        with(&example(guide, "item"), "/version", None).to_string(),
        data("listing.cancelled", "reason", json!("mistake")),
        balance.replacen('{', "{\"version\":1,", 1),
        set("listing", "/id8", Value::Null),
        set("listing", "/price_usd", json!(12)),
        set("listing", "/version", json!("1")),
        set("listing", "/version", json!(-1)),
        set("listing", "/version", json!(9_223_372_036_854_775_808_u64)),
        set("listing", "/is_auction", json!("yes")),
        set("quote", "/asks_usd", json!(["1", "1.234"])),
        set("balance", "/held_usd", json!("-0.01")),
        set("balance", "/available_usd", json!("15.01")),
        set("item", "/variants/0/variant_id", json!("x")),
        set("item", "/id", json!("no spaces")),
        set("marketplace", "/key", json!("no spaces")),
        set("item", "/kind", json!("Skin")),
        set("listing", "/id8", json!("A1B2C3D4")),
        set("item", "/name", json!("tab\t")),
        set("marketplace", "/link", json!("ftp://skinport.example.com")),
        set("listing", "/created_at", json!("yesterday")),
        data("order.completed", "delivered_at", json!("2026-11-20 10:04:31Z")),
        set("quote", "/observed_at", json!("2026-11-20T12:05:00.001Z")),
        set("order", "/created_at", json!("2026-11-21T12:00:00.001Z")),
        set("listing", "/kind", json!("drone")),
        set("event", "/event", json!("listing.renamed")),
        json!({"type": "item", "id": "x", "removed": true, "name": "X", "version": 1}).to_string(),
        times("item", "/variants", 501),
        times("quote", "/asks_usd", 1_001),
        times("order", "/items", 201),
    ]
}

#[test]
fn the_table_of_reasons_has_their_exact_texts() {
    let guide = guide();
    let reason_and_field = |text: &String| {
        let Rejection { field, reason, .. } = rejection(text).unwrap_or_else(|| panic!("{text} is accepted"));
        (reason, if field.is_empty() { "$".to_owned() } else { field })
    };
    let given: BTreeSet<_> = broken(&guide).iter().map(reason_and_field).collect();
    let documented = rows::<3>(section(&guide, "By its form")).into_iter();
    let documented: BTreeSet<_> =
        documented.map(|[reason, field, _]| (code(reason).to_owned(), code(field).to_owned())).collect();
    assert_eq!(documented, given);
}
