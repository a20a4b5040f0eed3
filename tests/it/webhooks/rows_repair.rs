//! `marketctl webhooks repair`, and the library behind it.

use platform::resources::{Queue, Table};
use serde_json::{Value, json};
use tests::set_row_number;
use tests::webhooks_cli::WebhooksCli;
use types::clock::Clock;
use types::event::EventKind;
use types::ids::DeliveryId;
use webhooks::delivery::Status;

use super::Scene;

const UNKNOWN: &str = "known_to_a_newer_release";

/// A scene with two deliveries whose messages are lost and which are overdue, and another endpoint. This release cannot
/// read a row of each of four kinds, and a sweep and a drain have set aside those that have a wake-up.
async fn spoilt() -> (Scene, [DeliveryId; 2], Value) {
    let scene = Scene::answering(204).await;
    let ids = [scene.stored(1).await, scene.stored(2).await];
    for queue in [Queue::WebhooksFirst, Queue::WebhooksRetry] {
        scene.stack.queue(queue).await.purge().await;
    }
    let second = scene.second(EventKind::ListingSold).await;
    for id in ids {
        scene.set_event(id, UNKNOWN).await;
    }
    scene.set_status(second, UNKNOWN).await;
    let finder = format!("endpoint#{second}");
    set_row_number(&scene.stack, Table::Webhooks, [&finder, "account"], "layout", 2).await;
    scene.reminder(7, 0).await;
    scene.wait(5 * 60);
    assert_eq!(scene.swept().await, json!({"Called": 1, "Unreadable": 1}));
    scene.stack.drain(scene.user).await;

    let until = scene.stack.clock.now().plus_millis(60 * 60 * 1_000);
    let (user, first) = (scene.user, scene.endpoint.id);
    let mut rows = vec![
        json!({
            "row": format!("account#{user} endpoints"), "kind": "endpoint", "what": format!("endpoint_{second}.status"),
            "user_id": user, "endpoint_id": second, "next_wake_up": null,
        }),
        json!({
            "row": format!("{finder} account"), "kind": "finder",
            "what": "finder of an endpoint: layout 2, written by a newer release",
            "user_id": user, "endpoint_id": second, "next_wake_up": null,
        }),
        json!({
            "row": "reminder#7 reminder", "kind": "unknown", "what": "pk",
            "user_id": null, "endpoint_id": null, "next_wake_up": until,
        }),
    ];
    rows.extend(ids.map(|id| {
        json!({
            "row": format!("delivery#{id} delivery"), "kind": "delivery", "what": "event",
            "user_id": user, "endpoint_id": first, "next_wake_up": until,
        })
    }));
    rows.sort_by_key(|row| row["row"].to_string());
    (scene, ids, json!(rows))
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_lists_every_row_that_cannot_be_read_and_what_is_known_of_it() {
    let (scene, ids, unreadable) = spoilt().await;
    let cli = WebhooksCli::new(&scene.stack);
    for line in ["repair --dry-run --json", "repair --json"] {
        let run = cli.run(line).await;
        assert_eq!(run.code, 1, "{run:?}");
        let shown = run.json();
        assert_eq!((&shown["unreadable"], &shown["brought_back"]), (&unreadable, &json!(0)), "{line}");
        assert_eq!(shown["dry_run"], json!(line.contains("--dry-run")));
        let failure: Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(failure["error"], "rows that cannot be read: 5");
    }
    let for_people = cli.run("repair --dry-run").await;
    assert_eq!(for_people.code, 1, "{for_people:?}");
    assert!(for_people.stdout.contains(&format!("delivery#{} delivery", ids[0])), "{for_people:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_brings_back_what_was_set_aside_and_can_be_read_again() {
    let (scene, ids, _) = spoilt().await;
    let admin = scene.stack.webhooks();
    scene.set_event(ids[0], "listing.sold").await;
    for dry_run in [true, false] {
        let before = scene.delivery(ids[0]).await.progress;
        let repair = admin.repair_rows(dry_run, |_| {}).await.unwrap();
        assert_eq!((repair.brought_back, repair.unreadable.len()), (1, 4));
        assert_eq!(scene.delivery(ids[0]).await.progress == before, dry_run);
    }
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(ids[0]).await, (Status::Delivered, 1));
    assert_eq!(admin.repair_rows(false, |_| {}).await.unwrap().brought_back, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_finds_nothing_wrong_with_rows_that_wait_for_their_time() {
    let scene = Scene::answering(500).await;
    let id = scene.stored(1).await;
    for _ in 0..3 {
        scene.attempt(id).await;
    }
    let before = scene.delivery(id).await;
    let shown = WebhooksCli::new(&scene.stack).done("repair").await;
    assert_eq!((&shown["unreadable"], &shown["brought_back"]), (&json!([]), &json!(0)));
    assert_eq!(scene.delivery(id).await, before);
}
