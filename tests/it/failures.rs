//! A store that is stopped, hangs, throttles, answers garbage or loses answers. The service never fails open.
//!
//! Rows that a newer release wrote, among others that this release can read: keys, marketplaces, quotes and orders.

use std::sync::Arc;
use std::time::Duration;

use admin::keys::{AdminError, KeyUpdate};
use aws_sdk_dynamodb::types::AttributeValue::{N, S};
use common::resources::Table;
use common::rows::Unreadable;
use common::scope::{Scope, Tier};
use common::store::StoreError;
use futures_util::future::join_all;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::{
    Fault, HttpReply, PATHS, RunningInstance, Stack, item, marketctl, marketplace, order, quote, remove_key_attribute,
    set_key_attribute, set_key_text, set_row_number, set_text, uuid,
};

use crate::anywhere::assert_described;

/// A 503 must arrive within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The budget of the keys that these tests use, in requests per minute.
const LIMIT: u32 = Tier::Free.limit();

async fn get(running: &RunningInstance, key: &str, path: &str) -> HttpReply {
    tokio::time::timeout(ANSWER_TIMEOUT, running.client.get(key, path)).await.expect("an answer within three seconds")
}

fn assert_unavailable(reply: &HttpReply, what: &str) {
    assert_eq!(reply.status, 503, "{what}");
    assert_eq!(reply.header("retry-after"), "1", "{what}");
    assert_eq!(reply.header("cache-control"), "no-store");
    assert_eq!(reply.json(), json!({"error": {"code": "service.unavailable", "params": {}}}), "{what}");
}

fn faults() -> Vec<Fault> {
    vec![
        Fault::Refuse,
        Fault::Hang,
        Fault::Error("ProvisionedThroughputExceededException"),
        Fault::Error("ThrottlingException"),
        Fault::Error("InternalServerError"),
        Fault::Error("ResourceNotFoundException"),
        Fault::Error("TransactionConflictException"),
        Fault::Garbage,
        Fault::LoseAnswer,
    ]
}

async fn market() -> Stack {
    let stack = Stack::new().await;
    stack.feed(&[item("ak-47-redline", "skin", Some("AK-47 | Redline"), 1)]).await;
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_key_write_is_503_everywhere_and_recovery_is_immediate() {
    let stack = market().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    for fault in faults() {
        proxy.plan({
            let fault = fault.clone();
            move |operation| if operation == "UpdateItem" { fault.clone() } else { Fault::None }
        });
        let requests = PATHS.iter().map(|(path, _)| get(&running, &key, path));
        for (reply, (path, _)) in join_all(requests).await.iter().zip(PATHS.iter()) {
            assert_unavailable(reply, &format!("{fault:?} on {path}"));
            assert_eq!((reply.rate().0, reply.rate().1), (0, 0));
        }
        proxy.set_fault(Fault::None);
        assert_eq!(get(&running, &key, "/v1/public/me").await.status, 200, "after {fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_read_is_503_with_the_budget_that_the_key_write_showed() {
    let stack = market().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let document = running.client.send("GET", "/v1/openapi.json", &[]).await.json();
    for fault in [Fault::Refuse, Fault::Hang, Fault::Error("ThrottlingException"), Fault::Garbage] {
        let key = stack.full_key().await;
        running.wait(5);
        proxy.plan({
            let fault = fault.clone();
            move |operation| if operation == "UpdateItem" { Fault::None } else { fault.clone() }
        });
        let reading = || PATHS.iter().map(|(path, _)| path).filter(|path| *path != "/v1/public/me");
        let replies = join_all(reading().map(|path| get(&running, &key, path))).await;
        for (reply, path) in replies.iter().zip(reading()) {
            assert_unavailable(reply, &format!("{fault:?} on {path}"));
            assert_eq!(reply.rate().0, LIMIT);
        }
        let orders = reading().zip(&replies).find(|(path, _)| *path == "/v1/public/orders").unwrap();
        assert_described(&document, orders.0, orders.1);
        assert_eq!(get(&running, &key, "/v1/public/me").await.status, 200, "`/me` reads nothing, so it does not fail");
        proxy.set_fault(Fault::None);
        for path in reading() {
            assert_ne!(get(&running, &key, path).await.status, 503, "{path} after {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_store_gone_the_process_lives_and_answers_503() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let key = &stack.full_key().await;
    let clock = Arc::new(common::clock::SystemClock::new());
    let host = local::host::Host::new(&variables, clock).unwrap();
    let instance = local::instance::Instance::start("127.0.0.1:0".parse().unwrap(), &host).await.unwrap();
    let client = tests::Client::new(&instance.base_url);
    assert_eq!(client.get(key, "/v1/public/me").await.status, 200);
    drop(stack);
    // A connection that is busy at that moment ends a little later.
    while client.get(key, "/v1/public/me").await.status == 200 {}
    for (path, _) in PATHS.iter() {
        let reply = tokio::time::timeout(ANSWER_TIMEOUT, client.get(key, path)).await.unwrap();
        assert_unavailable(&reply, path);
    }
    assert_eq!(client.get(key, "/v1/openapi.json").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_500_and_shows_nothing_of_it() {
    let stack = market().await;
    let running = stack.instance().await;
    let scan = tests::dynamodb(&stack).scan().table_name("marketplace-market").send().await.unwrap();
    let item = scan.items().iter().find(|row| row["pk"].as_s().unwrap().starts_with("entity#catalog")).unwrap();
    let [pk, sk] = ["pk", "sk"].map(|name| item[name].as_s().unwrap().as_str());
    set_text(&stack, Table::Market, [pk, sk], "data", "{\"secret\":").await;
    let reply = get(&running, &stack.full_key().await, "/v1/public/items/ak-47-redline").await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json(), json!({"error": {"code": "service.internal", "params": {}}}));
    assert_eq!((reply.rate(), reply.header("cache-control")), ((LIMIT, LIMIT - 1, 60), "no-store"));
}

/// A word that this release does not know.
const UNKNOWN: &str = "known_to_a_newer_release";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_read_hides_no_other_and_fails_only_its_own_requests() {
    let (stack, user) = (Stack::new().await, uuid(5).into());
    let (unreadable, unreadable_record) = stack.key_of(user, &Scope::ALL).await;
    let (readable, readable_record) = stack.key_of(user, &Scope::ALL).await;
    set_key_text(&stack, &unreadable, "tier", UNKNOWN).await;

    let keys = stack.admin.keys().list(user).await.unwrap();
    assert_eq!(keys.readable, std::slice::from_ref(&readable_record));
    let row = format!("user#{user} {}", unreadable_record.key_id);
    assert_eq!(keys.unreadable, [Unreadable { row: row.clone(), what: "tier".to_owned() }]);

    let (variables, owner) = (Variables::new(&stack.aws.endpoint_url), user.to_string());
    let run = marketctl(&variables, &["keys", "list", "--user", owner.as_str(), "--json"], "").await;
    let shown = run.json();
    assert_eq!((run.code, shown.as_array().map(Vec::len)), (1, Some(1)), "{run:?}");
    assert_eq!(shown[0]["key_id"], json!(readable_record.key_id));
    let failure: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(failure["unreadable"], json!([{"row": row, "what": "tier"}]));

    let running = stack.instance().await;
    for (key, status) in [(&unreadable, 500), (&readable, 200)] {
        assert_eq!(running.client.get(key, "/v1/public/me").await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_limit_or_expiry_is_malformed_is_not_used_without_it() {
    let (stack, user) = (Stack::new().await, uuid(5).into());
    let running = stack.instance().await;
    for (attribute, value) in [
        ("limit_override", S("7".to_owned())),
        ("limit_override", N("-1".to_owned())),
        ("limit_override", N("7.5".to_owned())),
        ("limit_override", N((u64::from(u32::MAX) + 1).to_string())),
        ("expires_at", S("2026-11-20T12:00:00.000Z".to_owned())),
        ("expires_at", N("0.5".to_owned())),
    ] {
        let (key, record) = stack.key_of(user, &Scope::ALL).await;
        set_key_attribute(&stack, &key, attribute, value.clone()).await;
        assert_eq!(running.client.get(&key, "/v1/public/me").await.status, 500, "{attribute} {value:?}");

        let row = format!("user#{user} {}", record.key_id);
        let unreadable = stack.admin.keys().list(user).await.unwrap().unreadable;
        assert!(unreadable.contains(&Unreadable { row, what: attribute.to_owned() }), "{value:?}: {unreadable:?}");
        let rename = KeyUpdate { name: Some("bot".to_owned()), ..KeyUpdate::default() };
        let refused = stack.admin.keys().update(record.key_id, rename).await;
        assert!(matches!(refused, Err(AdminError::Store(StoreError::Corrupt { .. }))), "{value:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_read_can_be_revoked() {
    let (stack, user) = (Stack::new().await, uuid(5).into());
    let variables = Variables::new(&stack.aws.endpoint_url);
    let (newer, newer_record) = stack.key_of(user, &Scope::ALL).await;
    let (bare, bare_record) = stack.key_of(user, &Scope::ALL).await;
    set_key_text(&stack, &newer, "tier", UNKNOWN).await;
    set_key_text(&stack, &newer, "status", UNKNOWN).await;
    for attribute in ["tier", "status", "scopes"] {
        remove_key_attribute(&stack, &bare, attribute).await;
    }
    // The release that wrote the row may have written the rows that find it.
    let finder = format!("id#{}", newer_record.key_id);
    set_row_number(&stack, Table::Keys, [&finder, "hash"], "layout", 2).await;

    let running = stack.instance().await;
    for (key, record) in [(&newer, newer_record), (&bare, bare_record)] {
        let key_id = record.key_id.to_string();
        // The second time, it is revoked already.
        for _ in 0..2 {
            let run = marketctl(&variables, &["--json", "keys", "revoke", &key_id], "").await;
            assert_eq!((run.code, run.json()), (0, json!({"key_id": key_id, "status": "revoked"})), "{run:?}");
        }
        let reply = running.client.get(key, "/v1/public/me").await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!("api_keys.invalid")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marketplaces_and_quotes_that_cannot_be_read_count_as_absent() {
    const OBSERVED_AT: &str = "2026-11-20T11:00:00Z";
    let stack = Stack::new().await;
    let names = ["one", "two", "three"];
    stack.feed(&names.map(|name| marketplace(name, true, 1))).await;
    stack.feed(&names.map(|name| quote(uuid(7), name, &["5.00"], OBSERVED_AT))).await;
    stack.feed(&[item("ak-47-redline", "skin", None, 1)]).await;
    set_text(&stack, Table::Market, ["marketplaces", "two"], "data", "{}").await;
    let quotes = format!("quotes#{}", uuid(7));
    set_text(&stack, Table::Market, [&quotes, "three"], "observed_at", UNKNOWN).await;

    let (running, key) = (stack.instance().await, stack.full_key().await);
    let listed = running.client.get(&key, "/v1/public/marketplaces").await.json();
    let keys: Vec<_> = listed.as_array().unwrap().iter().map(|place| place["key"].clone()).collect();
    assert_eq!(keys, ["one", "three"]);
    let prices = running.client.get(&key, &format!("/v1/public/prices/{}", uuid(7))).await.json();
    assert_eq!((&prices["sample_size"], &prices["source_keys"]), (&json!(1), &json!(["one"])));
    let item = running.client.get(&key, "/v1/public/items/ak-47-redline?include=prices").await.json();
    assert_eq!(item["variants"][0]["prices"], prices);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_cannot_be_read_is_an_error_of_its_page_alone() {
    let (stack, user, other) = (Stack::new().await, uuid(5).into(), uuid(6).into());
    let at = ["2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"];
    stack.feed(&[order(user, 1, at[0], 1), order(user, 2, at[1], 1), order(other, 3, at[0], 1)]).await;
    let (orders, position) = (format!("orders#{user}"), format!("2026-11-20T10:00:00.000Z#{}", uuid(1)));
    set_text(&stack, Table::Accounts, [&orders, &position], "data", UNKNOWN).await;

    let running = stack.instance().await;
    for (user, status) in [(user, 500), (other, 200)] {
        let (key, _) = stack.key_of(user, &Scope::ALL).await;
        assert_eq!(running.client.get(&key, "/v1/public/orders").await.status, status);
    }
}
