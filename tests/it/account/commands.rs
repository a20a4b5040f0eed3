//! What the commands do.

use std::collections::BTreeSet;
use std::time::Duration;

use account::CommandName;
use runtime::Worker;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL};
use tests::{Fault, Proxy};
use types::scope::Tier;

use super::{Settings, event};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_renamed_replaced_and_revoked() {
    let settings = Settings::new().await;
    let running = settings.stack.instance().await;
    let status = async |key: &Value| running.client.get(key.as_str().unwrap(), "/v1/public/me").await.status;
    let made = settings.done(CommandName::KeysCreate, json!({"name": "bot", "scopes": ["catalog:read"]})).await;
    assert_eq!((&made["tier"], &made["rate_limit_per_minute"]), (&json!("free"), &json!(Tier::Free.limit())));
    assert_eq!(
        (&made["user_id"], &made["expires_at"], status(&made["api_key"]).await),
        (&json!(OWNER), &Value::Null, 200)
    );
    let this = json!({"key_id": made["key_id"]});
    let renamed = settings.done(CommandName::KeysRename, json!({"key_id": made["key_id"], "name": "bot 2"})).await;
    assert_eq!((&renamed["name"], renamed.get("api_key")), (&json!("bot 2"), None));

    let rotate = json!({"key_id": made["key_id"], "overlap_seconds": 60});
    let next = settings.done(CommandName::KeysRotate, rotate).await;
    assert_eq!((&next["old_key_id"], &next["name"]), (&made["key_id"], &json!("bot 2")));
    assert_eq!((&next["old_expires_at"], &next["in_doubt"]), (&json!("2026-11-20T12:01:00.000Z"), &json!(false)));
    assert_eq!((status(&made["api_key"]).await, status(&next["api_key"]).await), (200, 200));
    let revoked = settings.done(CommandName::KeysRevoke, this.clone()).await;
    assert_eq!((&revoked["status"], status(&made["api_key"]).await), (&json!("revoked"), 401));
    assert_eq!(status(&next["api_key"]).await, 200);

    let listed = settings.done(CommandName::KeysList, json!({})).await;
    let ids: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| key["key_id"].clone()).collect();
    assert!(ids.len() == 2 && ids.contains(&made["key_id"]) && ids.contains(&next["key_id"]), "{listed}");
    let shown = settings.done(CommandName::KeysShow, this).await;
    assert!(shown["usage"]["days"].is_array(), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_is_walked_and_shows_texts_and_secrets_once() {
    let settings = Settings::new().await;
    let walked = settings.walk().await;
    let commands: BTreeSet<_> = walked.iter().map(|done| done.command).collect();
    assert_eq!(commands, CommandName::ALL.into());
    for (member, made_by) in [
        ("api_key", [CommandName::KeysCreate, CommandName::KeysRotate]),
        ("secret", [CommandName::EndpointsAdd, CommandName::EndpointsRotateSecret]),
    ] {
        let showing = walked.iter().filter(|done| done.answer["result"].get(member).is_some());
        assert_eq!(showing.map(|done| done.command).collect::<Vec<_>>(), made_by, "{member}");
    }
}

/// A secret is in one answer only. So the repetition of a write must not be taken for somebody else's change.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_and_activated_even_if_the_answer_to_its_write_is_lost() {
    let (settings, proxy) = Settings::behind_proxy().await;
    let id = settings.endpoint().await;
    for activate in [false, true] {
        let mut is_first = true;
        proxy.plan(move |operation| {
            let lose = operation == "UpdateItem" && std::mem::take(&mut is_first);
            if lose { Fault::LoseAnswer } else { Fault::None }
        });
        let parameters = json!({"endpoint_id": id, "activate": activate});
        let shown = settings.done(CommandName::EndpointsRotateSecret, parameters).await;
        assert_eq!(shown.get("secret").is_some(), !activate, "{shown}");
    }
    let endpoint = settings.stack.endpoint_of(OWNER.parse().unwrap()).await;
    assert_eq!(endpoint.secret_version, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_listed_page_by_page_and_by_status() {
    let settings = Settings::new().await;
    let id = settings.endpoint().await;
    let mut sent = BTreeSet::new();
    for _ in 0..3 {
        let test = settings.done(CommandName::EndpointsTest, json!({"endpoint_id": id})).await;
        sent.insert(test["delivery_id"].as_str().unwrap().to_owned());
    }
    let (mut seen, mut pages, mut cursor) = (BTreeSet::new(), 0, Value::Null);
    loop {
        let page = json!({"endpoint_id": id, "limit": 2, "cursor": cursor, "status": "pending"});
        let page = settings.done(CommandName::DeliveriesList, page).await;
        let rows = page["deliveries"].as_array().unwrap();
        assert!(rows.len() <= 2 && rows.iter().all(|row| seen.insert(row["id"].as_str().unwrap().to_owned())));
        (pages, cursor) = (pages + 1, page["cursor"].clone());
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((&seen, pages), (&sent, 2));
    let held = settings.done(CommandName::DeliveriesList, json!({"endpoint_id": id, "status": "held"})).await;
    assert_eq!(held["deliveries"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_present_state_does_not_allow_has_a_code() {
    let settings = Settings::new().await;
    let code = async |command, parameters: Value| {
        let answer = settings.answer(event(OWNER, command, &parameters)).await;
        answer["error"]["code"].as_str().unwrap_or_default().to_owned()
    };
    let [key, endpoint, delivery] = settings.belongings().await;
    settings.done(CommandName::KeysRevoke, key.clone()).await;
    assert_eq!(code(CommandName::KeysRotate, key).await, "conflict");
    settings.done(CommandName::EndpointsDisable, endpoint.clone()).await;
    assert_eq!(code(CommandName::EndpointsTest, endpoint.clone()).await, "conflict");
    assert_eq!(code(CommandName::DeliveriesResend, delivery).await, "conflict");
    for _ in 1..10 {
        settings.endpoint().await;
    }
    assert_eq!(code(CommandName::EndpointsAdd, json!({"url": URL, "events": ["listing.sold"]})).await, "limit_reached");
    settings.done(CommandName::EndpointsRemove, endpoint.clone()).await;
    // A removal that was cut short is done again.
    let again = settings.done(CommandName::EndpointsRemove, endpoint).await;
    assert_eq!(again["ended_deliveries"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_answer_is_unavailable_and_is_not_quoted() {
    let (settings, proxy) = Settings::behind_proxy().await;
    proxy.set_fault(tests::Fault::Error("ProvisionedThroughputExceededException"));
    let answer = settings.answer(event(OWNER, CommandName::KeysList, &json!({}))).await;
    assert_eq!(answer["error"]["code"], "unavailable");
    assert!(!answer.to_string().contains("Throughput"), "{answer}");
}

/// Lambda would end the function without an answer and without the audit line.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_too_long_is_answered_and_goes_on_when_it_is_sent_again() {
    let settings = Settings::new().await;
    let [_, endpoint, _] = settings.belongings().await;
    let proxy = Proxy::start(&settings.stack.aws.endpoint_url).await;
    let hurried = settings.stack.account_at(&proxy.url).await.with_limit(Duration::from_millis(400));
    proxy.plan(|operation| if operation == "Query" { Fault::Slow(Duration::from_millis(800)) } else { Fault::None });
    let answer = hurried.work(event(OWNER, CommandName::EndpointsRemove, &endpoint)).await.unwrap();
    assert_eq!(answer["error"]["code"], "unavailable", "{answer}");
    let removed = settings.done(CommandName::EndpointsRemove, endpoint).await;
    assert_eq!(removed["ended_deliveries"], 1);
}
