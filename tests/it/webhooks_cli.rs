//! Deliveries, managed with `marketctl`.

use serde_json::{Value, json};
use tests::Stack;
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use webhooks::delivery::Lane;

#[tokio::test(flavor = "multi_thread")]
async fn a_test_delivery_is_listed_shown_and_sent_again() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let (id, secret) = cli.add(OWNER).await;
    let first = text(&cli.done(&format!("test {id}")).await["delivery_id"]);
    let second = text(&cli.done(&format!("test {id} --event wallet.deposit")).await["delivery_id"]);
    assert_eq!((waiting(&stack, Lane::First).await, waiting(&stack, Lane::Retry).await), (2, 0));

    let deliveries = cli.done(&format!("deliveries {id}")).await;
    let row = |delivery: &str, event: &str, at: &Value| {
        json!({"id": delivery, "endpoint_id": id, "event": event, "status": "pending", "attempts": 0,
            "created_at": at, "next_attempt_at": at, "test": true})
    };
    let at = [0, 1].map(|number| deliveries[number]["created_at"].clone());
    assert!(text(&at[0]) > text(&at[1]));
    assert_eq!(deliveries, json!([row(&second, "wallet.deposit", &at[0]), row(&first, "listing.sold", &at[1])]));
    assert_eq!(cli.done(&format!("deliveries {id} --limit 1")).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --status pending")).await, deliveries);
    assert_eq!(cli.done(&format!("deliveries {id} --status failed")).await, json!([]));

    let show = format!("show {first}");
    let shown = cli.done(&show).await;
    let body: Value = serde_json::from_str(shown["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["id"], &body["event"]), (&json!(first), &json!("listing.sold")));
    let expected = json!({"id": first, "endpoint_id": id, "event": "listing.sold", "status": "pending",
        "failure": null, "attempts": [], "attempts_dropped": 0, "next_attempt_at": at[1], "created_at": at[1],
        "round": 1, "test": true, "body": shown["body"]});
    assert_eq!(shown, expected);

    assert_eq!(cli.done(&format!("resend {first}")).await, json!({"delivery_id": first}));
    assert_eq!((waiting(&stack, Lane::First).await, waiting(&stack, Lane::Retry).await), (2, 1));
    assert_eq!(cli.done(&show).await["round"], 2);

    cli.done(&format!("disable {id}")).await;
    let off = format!("endpoint {id} is disabled");
    assert_eq!(cli.refused(&format!("test {id}")).await, off);
    assert_eq!(cli.refused(&format!("resend {first}")).await, off);
    for line in [format!("list --user {OWNER}"), show.clone(), format!("deliveries {id}")] {
        let (people, programs) = (cli.run(&line).await, cli.run(&format!("{line} --json")).await);
        let printed = format!("{people:?}{programs:?}");
        assert!(!printed.contains("whsec_") && !printed.contains(&secret[6..]), "{printed}");
    }

    assert_eq!(cli.done(&format!("remove {id}")).await, json!({"id": id, "ended_deliveries": 2}));
    let ended = cli.done(&show).await;
    assert_eq!(
        (&ended["status"], &ended["failure"], &ended["next_attempt_at"]),
        (&json!("failed"), &json!("endpoint_removed"), &Value::Null)
    );
    assert_eq!(cli.done(&format!("deliveries {id} --status failed")).await.as_array().unwrap().len(), 2);
    assert_eq!(cli.refused(&format!("resend {first}")).await, format!("endpoint {id} was removed"));
}

/// How many messages are in a delivery queue.
async fn waiting(stack: &Stack, lane: Lane) -> u64 {
    stack.webhooks().queues.waiting(lane).await.unwrap()
}
