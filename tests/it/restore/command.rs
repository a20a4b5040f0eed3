//! What the command says, what it refuses, and the tables without a repair.
//!
//! A restore that is interrupted at any step, and goes on where it was.

use std::collections::BTreeSet;

use common::resources::Table;
use common::scope::Scope;
use common::timestamp::Timestamp;
use serde_json::{Value, json};
use tests::{Fault, Proxy, Stack, Template, assert_orders_are_dense, dynamodb, listing, order, uuid};

use super::{AT, assert_settings, deploy_settings, described, feed_is_on, restore, restore_through};
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

const TABLE: &str = "marketplace-accounts";
const COPY: &str = "marketplace-accounts-restored";
/// The steps that can be interrupted, each with a call at which the command dies. The calls to Lambda have no name
/// of their own, and of a repair the first one stands for all.
const CALLS: [[&str; 2]; 13] = [
    ["stop", "PutObject"],
    ["copy", "RestoreTableToPointInTime"],
    ["note", "TagResource"],
    ["repair", "Scan"],
    ["back_up", "CreateBackup"],
    ["delete", "UpdateTable"],
    ["delete", "DeleteTable"],
    ["swap", "RestoreTableFromBackup"],
    ["settings", "TagResource"],
    ["settings", "UpdateTimeToLive"],
    ["settings", "UpdateContinuousBackups"],
    ["settings", "UpdateTable"],
    ["start", "PutObject"],
];

/// Lets the command die at its first call of this operation, before the call is made or after it.
fn die_at(proxy: &Proxy, operation: &'static str, is_made: bool) {
    let (mut is_dead, mut is_made) = (false, is_made);
    proxy.plan(move |called| {
        is_dead |= called == operation;
        if !is_dead {
            return Fault::None;
        }
        // The SDK does not try again what is forbidden.
        if std::mem::take(&mut is_made) { Fault::LoseAnswer } else { Fault::Error("AccessDeniedException") }
    });
}

/// Asserts that nothing is lost, and that the feed is only applied to a table that is as it was or was repaired.
async fn assert_safe(stack: &Stack, what: &str) {
    let backups = dynamodb(stack).list_backups().table_name(COPY).send().await.unwrap();
    let backups = backups.backup_summaries.unwrap_or_default();
    match described(stack, TABLE).await {
        None => {
            assert!(!backups.is_empty(), "{what}: the table is gone, and there is no backup");
            assert!(!feed_is_on(stack), "{what}: the feed is applied to a table that is gone");
        }
        Some(table) => {
            let source = table.restore_summary.and_then(|summary| summary.source_backup_arn);
            let is_of_backup = backups.iter().any(|backup| backup.backup_arn == source);
            assert!(source.is_none() || is_of_backup, "{what}: restored from {source:?}");
            if source.is_none() && feed_is_on(stack) {
                assert!(described(stack, COPY).await.is_none(), "{what}: the feed is applied to a damaged table");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_interrupted_at_any_step_goes_on_where_it_was() {
    let (stack, user) = (Stack::new().await, uuid(1_000).into());
    deploy_settings(&stack, TABLE).await;
    stack.feed(&[order(user, 1, "2026-11-20T10:00:00Z", 1)]).await;
    stack.feed(&[order(user, 2, "2026-11-20T10:01:00Z", 1)]).await;
    let moment = stack.aws.recovery().moment();
    let expected: Vec<_> = rows(&stack, TABLE).await.into_keys().collect();
    stack.aws.recovery().cut_last_transaction(0b0001);
    stack.feed(&[order(user, 3, "2026-11-20T10:02:00Z", 1)]).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    for ([step, call], is_made) in CALLS.into_iter().flat_map(|call| [(call, false), (call, true)]) {
        die_at(&proxy, call, is_made);
        let program = restore_through(&proxy.url, "accounts", moment, &[]).await;
        assert_eq!(program.code, 1, "{step} {call}: {program:?}");
        let failure: Value = serde_json::from_str(&program.stderr).unwrap();
        assert_eq!(failure["step"], step, "{call}: {program:?}");
        assert_safe(&stack, &format!("{step} {call}: {program:?}")).await;
    }
    proxy.set_fault(Fault::None);
    let program = restore_through(&proxy.url, "accounts", moment, &[]).await;
    assert_eq!(program.code, 0, "{program:?}");
    assert_safe(&stack, "after the last run").await;
    assert!(feed_is_on(&stack));
    assert_settings(&stack, TABLE).await;
    assert_orders_are_dense(&stack).await;
    stack.feed_outcomes(&[order(user, 2, "2026-11-20T10:01:00Z", 1)]).await;
    let found: Vec<_> = rows(&stack, TABLE).await.into_keys().collect();
    assert_eq!(found, expected);
}
