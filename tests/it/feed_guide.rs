//! Tests the guide for systems that write into the feed (`docs/feed.md`): its examples are sent through a real stack.

use std::collections::BTreeSet;
use std::fs;

use admin::webhooks::NewEndpoint;
use feed::{Rejection, parse};
use serde_json::{Value, json};
use tests::{DeadLetter, NOON, Receiver, Stack, tables};
use types::event::EventKind;
use types::ids::UserId;

const GUIDE_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/feed.md");

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

/// Returns the names of the fields that a message may have, as the refusal of an unknown one lists them.
fn names(message: &Value) -> BTreeSet<String> {
    let mut message = message.clone();
    message["surprise"] = json!(1);
    let Rejection { reason, .. } = parse(&message.to_string(), NOON.parse().unwrap()).unwrap_err();
    let (_, expected) = reason.split_once(", expected ").unwrap_or_else(|| panic!("no names in {reason:?}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A field that no fixture has would be null in every golden file, and hardly tested at all.
#[test]
fn the_fixtures_have_every_field_of_their_type() {
    for message in tests::market(tests::uuid(1).into()) {
        let fields: BTreeSet<String> = message.as_object().unwrap().keys().cloned().collect();
        let accepted = names(&message);
        let absent: Vec<_> = accepted.difference(&fields).filter(|field| *field != "removed").collect();
        assert!(absent.is_empty(), "{absent:?} of {message}");
    }
}
