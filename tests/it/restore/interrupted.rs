//! A restore that is interrupted at any step, and goes on where it was.

use serde_json::Value;
use tests::{Fault, Proxy, Stack, assert_orders_are_dense, dynamodb, order, uuid};

use super::{assert_settings, deploy_settings, described, feed_is_on, restore_through};
use crate::repair::rows;

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
