//! What this release writes can be read by the release before, which runs beside it during a deployment, and alone
//! after a rollback. The golden files are what this release writes.

use serde_json::json;
use webhooks::notice::DisabledNotice;

use super::golden;
use super::kinds::KINDS;

/// The members of messages without which the release before cannot read them.
const MESSAGES: [(&str, &[&str]); 6] = [
    ("first", &["type", "layout", "delivery_id", "account_id", "endpoint_id", "event", "created_at", "body"]),
    ("attempt", &["type", "delivery_id", "account_id", "endpoint_id", "round", "attempt", "token"]),
    ("drain-message", &["type", "account_id", "token"]),
    ("notice-message", &["type", "notice_id", "endpoint_id", "account_id", "url", "delivery_id", "disabled_at"]),
    ("notice-failing-message", &["type", "notice_id", "endpoint_id"]),
    ("notice-recovered-message", &["type", "notice_id", "endpoint_id"]),
];

#[test]
fn every_row_has_the_attributes_that_the_release_before_requires() {
    let mut missing = Vec::new();
    for kind in &KINDS {
        for row in golden::read(kind.name)["rows"].as_array().unwrap() {
            let lacks = |(name, form): &&(&str, &str)| row.get(*name).and_then(|value| value.get(*form)).is_none();
            let lacking = kind.required.iter().filter(lacks);
            missing.extend(lacking.map(|(name, form)| format!("{} without {name} of type {form}: {row}", kind.name)));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn no_row_and_no_message_names_its_first_layout() {
    for kind in &KINDS {
        for row in golden::read(kind.name)["rows"].as_array().unwrap() {
            assert_ne!(row.get("layout"), Some(&json!({"N": "1"})), "{}", kind.name);
        }
    }
    for (name, required) in MESSAGES {
        let message = golden::read(name)["message"].take();
        assert!(required.iter().all(|member| message.get(member).is_some()), "{name}: {message}");
        assert_ne!(message.get("layout"), Some(&json!(1)), "{name}");
    }
}

/// The release before does not look at the type. It sets a notice aside that it cannot read.
#[test]
fn the_release_before_takes_no_other_notice_for_that_of_a_switch_off() {
    let is_switch_off = |name| serde_json::from_value::<DisabledNotice>(golden::read(name)["message"].take()).is_ok();
    let names = ["notice-message", "notice-failing-message", "notice-recovered-message"];
    assert_eq!(names.map(is_switch_off), [true, false, false]);
}
