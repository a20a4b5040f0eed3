//! What the command says, what it refuses, and the tables without a repair.

use std::collections::BTreeSet;

use platform::resources::Table;
use serde_json::json;
use tests::{Stack, Template, dynamodb, listing, uuid};
use types::scope::Scope;
use types::timestamp::Timestamp;

use super::{AT, assert_settings, deploy_settings, described, feed_is_on, restore};
use crate::repair::rows;

const MARKET: &str = "marketplace-market";
const KEYS: &str = "marketplace-keys";
const WEBHOOKS: &str = "marketplace-webhooks";
const STEPS: [&str; 10] = ["stop", "copy", "note", "repair", "back_up", "delete", "swap", "settings", "check", "start"];

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_names_the_steps_and_changes_nothing() {
    let stack = Stack::new().await;
    deploy_settings(&stack, MARKET).await;
    stack.feed(&[listing(1, "1.00", AT, 1)]).await;
    let (moment, before) = (stack.aws.recovery().moment(), rows(&stack, MARKET).await);
    let looked = restore(&stack, "market", moment, &["--dry-run"]).await;
    assert_eq!(looked.code, 0, "{looked:?}");
    let report = looked.json();
    assert_eq!((&report["left"], &report["done"]), (&json!(STEPS), &json!([])), "{report}");
    assert_eq!((&report["dry_run"], &report["backup"]), (&json!(true), &json!(null)));
    let writers: Vec<_> = report["writers"].as_array().unwrap().iter().map(|writer| &writer["kind"]).collect();
    assert_eq!(writers, ["event_source_mapping", "rule"]);
    assert!(report["writers"].as_array().unwrap().iter().all(|writer| writer["state"] == "on"), "{report}");
    assert_eq!(rows(&stack, MARKET).await, before);
    assert!(described(&stack, "marketplace-market-restored").await.is_none());
    assert!(feed_is_on(&stack));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_that_writes_to_a_table_is_stopped_for_its_restore() {
    let (stack, template) = (Stack::new().await, Template::read());
    for (table, name) in
        [(Table::Keys, "keys"), (Table::Market, "market"), (Table::Accounts, "accounts"), (Table::Webhooks, "webhooks")]
    {
        deploy_settings(&stack, &format!("marketplace-{name}")).await;
        let looked = restore(&stack, name, stack.aws.recovery().moment(), &["--dry-run"]).await.json();
        let writers = looked["writers"].as_array().unwrap().iter();
        let found: BTreeSet<_> = writers.map(|writer| writer["function"].as_str().unwrap().to_owned()).collect();
        // Of the API, only what asks for a key writes anything.
        let writing = template.functions_that(|function| {
            function.uses(table) && (table == Table::Keys || !function.is_triggered_by("HttpApi"))
        });
        let writing: BTreeSet<_> = writing.into_iter().map(|function| format!("marketplace-{function}")).collect();
        assert_eq!(found, writing, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_restore_is_not_done_again() {
    let stack = Stack::new().await;
    deploy_settings(&stack, MARKET).await;
    stack.feed(&[listing(1, "1.00", AT, 1)]).await;
    let moment = stack.aws.recovery().moment();
    let first = restore(&stack, "market", moment, &[]).await;
    assert_eq!((first.code, &first.json()["done"]), (0, &json!(STEPS)), "{first:?}");
    stack.feed(&[listing(2, "1.00", AT, 1)]).await;
    let before = rows(&stack, MARKET).await;
    let again = restore(&stack, "market", moment, &[]).await;
    assert_eq!(again.json()["done"], json!(["swap", "settings", "check", "start"]), "{again:?}");
    assert_eq!(rows(&stack, MARKET).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_restored_is_refused_before_anything_is_stopped() {
    let stack = Stack::new().await;
    let moment: Timestamp = AT.parse().unwrap();
    let refused = async |to: Timestamp, words: &str| {
        let program = restore(&stack, "market", to, &[]).await;
        assert_eq!(program.code, 1, "{program:?}");
        assert!(program.stderr.contains("nothing was done") && program.stderr.contains(words), "{program:?}");
        assert!(feed_is_on(&stack));
    };
    refused(moment, "has no point-in-time recovery").await;
    deploy_settings(&stack, MARKET).await;
    let now = stack.aws.recovery().moment();
    refused(now.plus_millis(-3_600_000), "can be restored to moments from").await;
    refused(now.plus_millis(3_600_000), "can be restored to moments from").await;
    let copy = dynamodb(&stack).restore_table_to_point_in_time().source_table_name(MARKET);
    let copy = copy.target_table_name("marketplace-market-restored");
    copy.restore_date_time(aws_sdk_dynamodb::primitives::DateTime::from_secs(now.seconds())).send().await.unwrap();
    refused(now.plus_millis(1_000), "is not a copy of this table at this moment").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_stays_off_the_air_until_the_operator_has_revoked_keys() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    deploy_settings(&stack, KEYS).await;
    let old = stack.full_key().await;
    let (revoked, record) = stack.key_of(uuid(1).into(), &Scope::ALL).await;
    let moment = stack.aws.recovery().moment();
    let new = stack.full_key().await;
    stack.admin.keys().revoke(record.key_id).await.unwrap();
    let stopped = restore(&stack, "keys", moment, &[]).await;
    assert_eq!((stopped.code, &stopped.json()["left"]), (0, &json!(["start"])), "{stopped:?}");
    assert_eq!(running.client.get(&old, "/v1/public/me").await.status, 503);
    let again = restore(&stack, "keys", moment, &[]).await;
    assert_eq!((again.code, &again.json()["left"]), (0, &json!(["start"])), "{again:?}");
    assert_eq!(running.client.get(&old, "/v1/public/me").await.status, 503);
    let started = restore(&stack, "keys", moment, &["--keys-revoked"]).await;
    assert_eq!((started.code, &started.json()["left"]), (0, &json!([])), "{started:?}");
    assert_eq!(running.client.get(&old, "/v1/public/me").await.status, 200);
    for gone in [new, revoked] {
        assert_eq!(running.client.get(&gone, "/v1/public/me").await.status, 401);
    }
    assert_settings(&stack, KEYS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_that_shall_stay_stopped() {
    let stack = Stack::new().await;
    deploy_settings(&stack, MARKET).await;
    let moment = stack.aws.recovery().moment();
    let stopped = restore(&stack, "market", moment, &["--no-start"]).await;
    assert_eq!((stopped.code, &stopped.json()["left"]), (0, &json!(["start"])), "{stopped:?}");
    assert!(!feed_is_on(&stack));
    assert_eq!(restore(&stack, "market", moment, &[]).await.code, 0);
    assert!(feed_is_on(&stack));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_webhooks_comes_back_with_its_indexes() {
    let stack = Stack::new().await;
    deploy_settings(&stack, WEBHOOKS).await;
    let moment = stack.aws.recovery().moment();
    let program = restore(&stack, "webhooks", moment, &[]).await;
    assert_eq!(program.code, 0, "{program:?}");
    let indexes = described(&stack, WEBHOOKS).await.unwrap().global_secondary_indexes.unwrap_or_default();
    assert_eq!(indexes.len(), Table::Webhooks.indexes().len());
    assert_settings(&stack, WEBHOOKS).await;
}
