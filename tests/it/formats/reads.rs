//! This release reads what the golden files say, and goes on from there.

use std::time::Duration;

use common::records::{PublicItem, PublicListing};
use replica::base::Compacted;
use serde_json::json;
use tests::{Stack, balance, compaction, item, listing, marketplace, order, quote, uuid};

use super::loaded::{keyring, loaded, loaded_as_it_is, with_more, with_more_members};
use super::scene::{Scene, key, user};
use super::seen::seen;

#[tokio::test(flavor = "multi_thread")]
async fn the_golden_rows_are_read_like_those_that_this_release_writes() {
    let scene = Scene::new().await;
    let written = scene.fixed(&json!(seen(&scene.stack, &scene.key).await));
    let found = json!(seen(&loaded_as_it_is().await, key().reveal()).await);
    assert_eq!(found, written);
    assert_eq!(found["/v1/public/listings"]["total"], 1);
    assert_eq!(found["/v1/public/orders"]["total"], 2);
}

/// Waits until the bases are due, and asserts that they are made from the golden ones and the log.
async fn assert_bases_are_folded(stack: &Stack) {
    stack.clock.advance(Duration::from_hours(7 * 24));
    let (url, clock) = (&stack.aws.endpoint_url, &stack.clock);
    let catalog = compaction::<PublicItem>(url, clock.clone()).run().await.unwrap();
    let listings = compaction::<PublicListing>(url, clock.clone()).run().await.unwrap();
    for outcome in [catalog, listings] {
        assert!(matches!(outcome, Compacted::Written { from_entities: false, .. }), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_newer_release_added_is_ignored_after_a_rollback() {
    let added = loaded(|_, row| with_more(row), &with_more_members(keyring())).await;
    let plain = loaded_as_it_is().await;
    assert_eq!(seen(&added, key().reveal()).await, seen(&plain, key().reveal()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_the_golden_rows_goes_on() {
    let stack = loaded_as_it_is().await;
    let running = stack.instance().await;
    stack
        .feed(&[
            item("ak-47-redline", "skin", Some("AK-47 | Redline, renamed"), 2),
            listing(3, "3.00", "2026-11-20T11:30:00Z", 1),
            marketplace("one", true, 2),
            quote(uuid(7), "one", &["6.00"], "2026-11-20T11:30:00Z"),
            order(user(), 1, "2026-11-20T10:00:00Z", 2),
            order(user(), 3, "2026-11-20T11:30:00Z", 1),
            balance(user(), "2.00", "2.00", "4.00", 2),
        ])
        .await;
    running.wait(2);
    let get = async |path: &str| running.client.get(key().reveal(), path).await.json();
    assert_eq!(get("/v1/public/listings").await["total"], 2);
    assert_eq!(get("/v1/public/items/ak-47-redline").await["name"], "AK-47 | Redline, renamed");
    assert_eq!(get("/v1/public/prices/00000000-0000-0000-0000-000000000007").await["lowest_usd"], "6.00");
    assert_eq!(get("/v1/public/orders").await["total"], 3);
    assert_eq!(get("/v1/public/wallet/balance").await["available_usd"], "4.00");

    assert_bases_are_folded(&stack).await;
    let fresh = stack.instance().await;
    for path in ["/v1/public/catalog", "/v1/public/listings"] {
        assert_eq!(fresh.client.get(key().reveal(), path).await.json()["total"], 2, "{path}");
    }
}
