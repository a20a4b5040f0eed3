//! Commands that cannot be read. The error names the member.

use account::CommandName;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL};

use super::{Settings, event};

const ID: &str = "00000000-0000-4000-8000-0000000000ff";

/// Asserts that an event is refused because of this member.
async fn assert_invalid(settings: &Settings, event: Value, field: Option<&str>) {
    let answer = settings.answer(event.clone()).await;
    let error = &answer["error"];
    assert_eq!((&error["code"], error["field"].as_str()), (&json!("invalid"), field), "{event}: {answer}");
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
        ("users", json!([])),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert_invalid(&settings, bad, Some(field)).await;
    }
    for field in ["version", "user_id", "command"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        assert_invalid(&settings, bad, Some(field)).await;
    }
    for bad in [json!(null), json!([]), json!("keys.list")] {
        assert_invalid(&settings, bad, Some("version")).await;
    }
    let bare = json!({"version": 1, "user_id": OWNER, "command": "keys.list"});
    assert!(settings.answer(bare).await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_strict_and_rules_name_the_member() {
    let settings = Settings::new().await;
    let [key, endpoint, _] = settings.belongings().await;
    let (key, endpoint) = (&key["key_id"], &endpoint["endpoint_id"]);
    for (command, parameters, field) in [
        (CommandName::KeysCreate, json!({}), "scopes"),
        (CommandName::KeysCreate, json!({"scopes": []}), "scopes"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:write"]}), "scopes[0]"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "tier": "pro"}), "tier"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "limit": 9}), "limit"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "name": ""}), "name"),
        (CommandName::KeysCreate, json!({"scopes": ["catalog:read"], "expires_at": "soon"}), "expires_at"),
        (
            CommandName::KeysCreate,
            json!({"scopes": ["catalog:read"], "expires_at": "2020-01-01T00:00:00Z"}),
            "expires_at",
        ),
        (CommandName::KeysList, json!({"user_id": ID}), "user_id"),
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
        (CommandName::DeliveriesResendAll, json!({"endpoint_id": endpoint, "statuses": ["pending"]}), "statuses[0]"),
    ] {
        assert_invalid(&settings, event(OWNER, command, &parameters), Some(field)).await;
    }
}
