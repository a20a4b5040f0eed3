//! Deliveries, managed with `marketctl`.

use platform::resources::Queue;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use tests::{Stack, uuid};
use types::clock::{Clock, SystemClock};
use types::event::EventKind;
use types::timestamp::Timestamp;
use webhooks::delivery::{Delivery, Lane, Progress, Status};

#[tokio::test(flavor = "multi_thread")]
async fn a_test_delivery_is_listed_shown_and_sent_again() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let (id, secret) = cli.add(OWNER).await;
    let first = text(&cli.done(&format!("test {id}")).await["delivery_id"]);
    let second = text(&cli.done(&format!("test {id} --event wallet.deposit")).await["delivery_id"]);
    assert_eq!((waiting(&stack, Lane::First).await, waiting(&stack, Lane::Slow).await), (0, 1));

    let deliveries = cli.done(&format!("deliveries {id}")).await;
    let row = |delivery: &str, event: &str, at: &Value| {
        json!({"id": delivery, "endpoint_id": id, "event": event, "status": "pending", "attempts": 0,
            "created_at": at, "next_attempt_at": at, "waits_for": "turn", "test": true})
    };
    let at = [0, 1].map(|number| deliveries[number]["created_at"].clone());
    assert!(text(&at[0]) > text(&at[1]));
    assert_eq!(deliveries, json!([row(&second, "wallet.deposit", &at[0]), row(&first, "listing.sold", &at[1])]));
    assert_eq!(cli.done(&format!("deliveries {id} --limit 1")).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --status pending")).await, deliveries);
    assert_eq!(cli.done(&format!("deliveries {id} --status failed")).await, json!([]));
    assert_eq!(cli.done(&format!("deliveries {id} --event wallet.deposit")).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --since {}", text(&at[0]))).await, json!([deliveries[0]]));
    assert_eq!(cli.done(&format!("deliveries {id} --until {}", text(&at[0]))).await, json!([deliveries[1]]));
    let shown = cli.done(&format!("show-endpoint {id}")).await;
    assert_eq!((&shown["health"]["waiting"], &shown["health"]["oldest_waiting_at"]), (&json!(2), &at[1]));

    let show = format!("show {first}");
    let shown = cli.done(&show).await;
    let body: Value = serde_json::from_str(shown["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["id"], &body["event"]), (&json!(first), &json!("listing.sold")));
    let expected = json!({"id": first, "endpoint_id": id, "event": "listing.sold", "status": "pending",
        "failure": null, "attempts": [], "attempts_dropped": 0, "next_attempt_at": at[1], "waits_for": "turn",
        "created_at": at[1], "round": 1, "test": true, "body": shown["body"]});
    assert_eq!(shown, expected);

    assert_eq!(cli.done(&format!("resend {first}")).await, json!({"delivery_id": first}));
    assert_eq!((waiting(&stack, Lane::First).await, waiting(&stack, Lane::Slow).await), (0, 1));
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

    assert_eq!(cli.done(&format!("remove {id}")).await, json!({"id": id, "ended_deliveries": 2, "unfinished": false}));
    let ended = cli.done(&show).await;
    assert_eq!(
        (&ended["status"], &ended["failure"], &ended["next_attempt_at"]),
        (&json!("failed"), &json!("endpoint_removed"), &Value::Null)
    );
    assert_eq!(cli.done(&format!("deliveries {id} --status failed")).await.as_array().unwrap().len(), 2);
    assert_eq!(cli.refused(&format!("resend {first}")).await, format!("endpoint {id} was removed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deliveries_of_an_outage_are_counted_and_then_sent_again_with_one_command() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let (id, _) = cli.add(OWNER).await;
    cli.done(&format!("disable {id}")).await;
    let statuses = [Status::Held, Status::Held, Status::Failed, Status::Failed, Status::Delivered];
    let at = store(&stack, &id, &statuses).await;
    let document = |found: [u64; 2], span: [usize; 2], dry_run: bool| {
        let total = found.iter().sum::<u64>();
        let (sent, left) = if dry_run { (0, total) } else { (total, 0) };
        json!({"endpoint_id": id, "dry_run": dry_run, "held": found[0], "failed": found[1], "oldest": at[span[0]],
            "newest": at[span[1]], "sent": sent, "skipped": {"changed": 0, "too_many_rounds": 0, "expired": 0},
            "left": left})
    };
    let resend = format!("resend --endpoint {id}");
    assert_eq!(cli.done(&format!("{resend} --dry-run")).await, document([2, 2], [0, 3], true));
    let held = format!("{resend} --status held --since {} --dry-run", at[1]);
    assert_eq!(cli.done(&held).await, document([1, 0], [1, 1], true));
    assert_eq!(cli.refused(&resend).await, format!("endpoint {id} is disabled"));
    assert_eq!(waiting(&stack, Lane::Slow).await, 0);

    let enabled = cli.done(&format!("enable {id} --resend-held")).await;
    assert_eq!((&enabled["id"], &enabled["status"]), (&json!(id), &json!("enabled")));
    assert_eq!(enabled["recovery"], document([2, 0], [0, 1], false));
    let before_last = cli.done(&format!("{resend} --until {}", at[3])).await;
    assert_eq!(before_last, document([0, 1], [2, 2], false));
    let people = cli.run(&resend).await;
    assert_eq!((people.code, people.stderr.as_str()), (0, ""), "{people:?}");
    assert!(people.stdout.contains("had 0 held and 1 failed deliveries"), "{people:?}");
    assert!(people.stdout.contains("Sent again: 1."), "{people:?}");
    assert_eq!(waiting(&stack, Lane::Slow).await, 1);

    let nothing = cli.run(&resend).await;
    assert_eq!((nothing.code, nothing.stdout.contains("has no such deliveries")), (0, true), "{nothing:?}");
    let empty = format!("{resend} --since {} --until {}", at[1], at[1]);
    assert_eq!(cli.refused(&empty).await, "since: must be before until");
    for wrong in ["--status pending", "--status delivered", "--since yesterday"] {
        let run = cli.run(&format!("{resend} {wrong}")).await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{wrong}: {run:?}");
    }
}

/// Stores deliveries to an endpoint with these statuses, each created a second after the one before. Returns the times.
async fn store(stack: &Stack, endpoint: &str, statuses: &[Status]) -> Vec<Timestamp> {
    let (admin, mut at) = (stack.webhooks(), SystemClock::new().now().plus_millis(-60_000));
    let mut times = Vec::new();
    for (number, status) in (1..).zip(statuses) {
        at = at.plus_millis(1_000);
        let id = uuid(number).into();
        let delivery = Delivery {
            id,
            endpoint_id: endpoint.parse().unwrap(),
            account_id: OWNER.parse().unwrap(),
            event: EventKind::ListingSold,
            is_test: false,
            created_at: at,
            body: "{}".to_owned(),
            progress: Progress::new(id, *status, at, at),
        };
        admin.store.put_delivery(&delivery).await.unwrap();
        times.push(at);
    }
    times
}

/// How many messages are in a delivery queue.
async fn waiting(stack: &Stack, lane: Lane) -> u64 {
    let queue = Queue::LANES[Lane::ALL.iter().position(|one| *one == lane).unwrap()];
    stack.queue(queue).await.visible_count().await
}
