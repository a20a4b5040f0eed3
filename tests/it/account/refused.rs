//! Commands that cannot be read. The error names the member.
//!
//! A command reaches nothing of another user.

use std::collections::BTreeSet;

use account::CommandName;
use common::resources::Table;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL, text};
use tests::{SettingsIds, set_text};

use super::{Settings, event};

const STRANGER: &str = "00000000-0000-4000-8000-00000000000f";
const NOTHING: &str = "00000000-0000-4000-8000-0000000000ff";

/// Asserts that an event is refused because of this member.
async fn assert_invalid(settings: &Settings, event: Value, field: &str) {
    let answer = settings.answer(event.clone()).await;
    let error = &answer["error"];
    assert_eq!((&error["code"], error["field"].as_str()), (&json!("invalid"), Some(field)), "{event}: {answer}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert_eq!(answer["version"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envelope_is_strict() {
    let settings = Settings::new().await;
    let good = event(OWNER, CommandName::KeysList, &json!({}));
    for (field, value) in [
        ("version", json!(2)),
        ("version", json!("1")),
        ("user_id", json!("me")),
        ("user_id", json!(7)),
        ("command", json!("keys.steal")),
        ("parameters", json!([])),
        ("actor", json!("")),
        ("actor", json!("x".repeat(129))),
        ("actor", json!("a\u{9b}b")),
        ("users", json!([])),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert_invalid(&settings, bad, field).await;
    }
    for field in ["version", "user_id", "command"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        assert_invalid(&settings, bad, field).await;
    }
    for bad in [json!(null), json!([]), json!("keys.list")] {
        assert_invalid(&settings, bad, "version").await;
    }
    let bare = json!({"version": 1, "user_id": OWNER, "command": "keys.list"});
    assert!(settings.answer(bare).await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_strict_and_rules_name_the_member() {
    let settings = Settings::new().await;
    let [key, endpoint, _] = settings.belongings().await;
    let (key, endpoint) = (&key["key_id"], &endpoint["endpoint_id"]);
    let before = settings.done(CommandName::EndpointsList, json!({})).await;
    for (command, parameters, field) in [
        (CommandName::KeysCreate, json!({}), "scopes"),
        (CommandName::KeysCreate, json!({"scopes": []}), "scopes"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:write"]}), "scopes[0]"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "tier": "pro"}), "tier"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "limit": 9}), "limit"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "name": ""}), "name"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "name": "a\nb"}), "name"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "expires_at": "soon"}), "expires_at"),
        (
            CommandName::KeysCreate,
            json!({"scopes": ["catalog:read"], "expires_at": "2020-01-01T00:00:00Z"}),
            "expires_at",
        ),
        (CommandName::KeysList, json!({"user_id": NOTHING}), "user_id"),
        (CommandName::KeysShow, json!({}), "key_id"),
        (CommandName::KeysShow, json!({"key_id": "42"}), "key_id"),
        (CommandName::KeysRename, json!({"key_id": key}), "name"),
        (CommandName::KeysRename, json!({"key_id": key, "name": "x".repeat(129)}), "name"),
        (CommandName::KeysRotate, json!({"key_id": key, "overlap_seconds": -1}), "overlap_seconds"),
        (CommandName::KeysRotate, json!({"key_id": key, "overlap_seconds": 604_801}), "overlap_seconds"),
        (CommandName::EndpointsAdd, json!({"url": URL, "events": []}), "events"),
        (CommandName::EndpointsAdd, json!({"url": "http://10.0.0.1/", "events": ["listing.sold"]}), "url"),
        (CommandName::EndpointsUpdate, json!({"endpoint_id": endpoint}), "url"),
        (CommandName::EndpointsUpdate, json!({"endpoint_id": endpoint, "events": ["all"]}), "events[0]"),
        (CommandName::EndpointsUpdate, json!({"endpoint_id": endpoint, "events": []}), "events"),
        (
            CommandName::EndpointsUpdate,
            json!({"endpoint_id": endpoint, "url": "http://10.0.0.1/", "events": ["wallet.deposit"]}),
            "url",
        ),
        (CommandName::EndpointsRotateSecret, json!({"endpoint_id": endpoint, "activate": "yes"}), "activate"),
        (CommandName::EndpointsTest, json!({"endpoint_id": endpoint, "event": "all"}), "event"),
        (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "limit": 0}), "limit"),
        (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "limit": 101}), "limit"),
        (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "cursor": "next"}), "cursor"),
        (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "event": "all"}), "event"),
        (CommandName::DeliveriesList, json!({"endpoint_id": endpoint, "since": "soon"}), "since"),
        (
            CommandName::DeliveriesList,
            json!({"endpoint_id": endpoint, "since": "2026-11-20T00:00:00Z", "until": "2026-11-20T00:00:00Z"}),
            "since",
        ),
        (CommandName::DeliveriesResend, json!({"delivery_id": 7}), "delivery_id"),
        (CommandName::DeliveriesResendAll, json!({"endpoint_id": endpoint, "statuses": []}), "statuses"),
        (CommandName::DeliveriesResendAll, json!({"endpoint_id": endpoint, "statuses": ["delivered"]}), "statuses[0]"),
    ] {
        assert_invalid(&settings, event(OWNER, command, &parameters), field).await;
    }
    assert_eq!(settings.done(CommandName::EndpointsList, json!({})).await, before);
}

/// Returns what the owner sees.
async fn seen(settings: &Settings, ids: &SettingsIds) -> [Value; 4] {
    let SettingsIds { key, endpoint, delivery } = ids;
    [
        settings.done(CommandName::KeysShow, json!({"key_id": key})).await,
        settings.done(CommandName::EndpointsList, json!({})).await,
        settings.done(CommandName::DeliveriesList, json!({"endpoint_id": endpoint})).await,
        settings.done(CommandName::DeliveriesShow, json!({"delivery_id": delivery})).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_user_is_answered_as_what_does_not_exist_and_stays_as_it_is() {
    let (settings, proxy) = Settings::behind_proxy().await;
    let theirs = settings.ids().await;
    let before = seen(&settings, &theirs).await;
    let [key, endpoint, delivery] = [NOTHING; 3].map(Value::from);
    let absent = SettingsIds { key, endpoint, delivery };
    let named = theirs.commands().map(|(command, _)| command);
    let walked: BTreeSet<_> = SettingsIds::NAMELESS.into_iter().chain(named).collect();
    assert_eq!(walked, CommandName::ALL.into(), "the walk leaves out no command that takes an id");
    for ((command, theirs), (_, absent)) in theirs.commands().into_iter().zip(absent.commands()) {
        let mut answers = Vec::new();
        for parameters in [theirs, absent] {
            proxy.take_calls();
            let answer = settings.answer(event(STRANGER, command, &parameters)).await;
            let calls = proxy.take_operations();
            assert_eq!(answer["error"]["code"], "not_found", "{command}: {answer}");
            answers.push((without_id(&answer, &parameters), calls));
        }
        assert_eq!(answers[0], answers[1], "{command}");
    }
    assert_eq!(seen(&settings, &theirs).await, before);
    for (command, empty) in [
        (CommandName::KeysList, json!({"keys": [], "unreadable": []})),
        (CommandName::EndpointsList, json!({"endpoints": [], "unreadable": []})),
    ] {
        assert_eq!(settings.answer(event(STRANGER, command, &json!({}))).await["result"], empty);
    }
}

/// Returns an answer without the id that its command named.
fn without_id(answer: &Value, parameters: &Value) -> String {
    let id = ["key_id", "endpoint_id", "delivery_id"].into_iter().find_map(|name| parameters[name].as_str());
    answer.to_string().replace(id.unwrap(), "ID")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_leads_nowhere_but_on_in_the_list_that_was_asked_for() {
    let settings = Settings::new().await;
    let [_, theirs, _] = settings.belongings().await;
    settings.done(CommandName::EndpointsTest, theirs.clone()).await;
    let mut page = theirs;
    page["limit"] = json!(1);
    let cursor = settings.done(CommandName::DeliveriesList, page.clone()).await["cursor"].clone();
    assert!(cursor.is_string());
    let add = event(STRANGER, CommandName::EndpointsAdd, &json!({"url": URL, "events": ["listing.sold"]}));
    let own = settings.answer(add).await["result"]["id"].clone();
    let list = json!({"endpoint_id": own, "cursor": cursor});
    let listed = settings.answer(event(STRANGER, CommandName::DeliveriesList, &list)).await;
    assert_eq!(listed["result"], json!({"deliveries": [], "unreadable": [], "cursor": null}));
    page["cursor"] = cursor;
    let rest = event(OWNER, CommandName::DeliveriesList, &page);
    assert_eq!(settings.answer(rest).await["result"]["deliveries"].as_array().unwrap().len(), 1);
}

/// A row that a newer release wrote must not tell a stranger that it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_of_another_user_that_cannot_be_read_does_not_exist_either() {
    let settings = Settings::new().await;
    let [_, _, delivery] = settings.belongings().await;
    let partition = format!("delivery#{}", text(&delivery["delivery_id"]));
    let unknown = "known_to_a_newer_release";
    set_text(&settings.stack, Table::Webhooks, [&partition, "delivery"], "event", unknown).await;
    for command in [CommandName::DeliveriesShow, CommandName::DeliveriesResend] {
        for (user, code) in [(STRANGER, "not_found"), (OWNER, "internal")] {
            let answer = settings.answer(event(user, command, &delivery)).await;
            assert_eq!(answer["error"]["code"], code, "{command}: {answer}");
        }
    }
}
