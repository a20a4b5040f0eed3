//! Webhooks on the operator's command line.

use serde_json::{Value, json};
use shared::webhooks::delivery::Lane;
use tests::uuid;
use tests::webhooks_cli::{OWNER, URL, WebhooksCli, text};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_added_listed_switched_and_removed() {
    let cli = WebhooksCli::new().await;
    let list = format!("list --user {OWNER}");
    assert_eq!(cli.done(&list).await, json!([]));
    let events = "--event wallet.deposit --event listing.sold --event listing.sold";
    let mut added = cli.done(&format!("add --user {OWNER} --url {URL} {events}")).await;
    let (id, secret) = (text(&added["id"]), text(&added["secret"]));
    assert!(secret.starts_with("whsec_"));
    let created_at = &added["created_at"];
    assert_eq!(
        added,
        json!({"id": id, "url": URL, "events": ["listing.sold", "wallet.deposit"], "status": "enabled",
            "disabled_reason": null, "created_at": created_at, "secret": secret})
    );
    added.as_object_mut().unwrap().remove("secret");
    assert_eq!(cli.done(&list).await, json!([added]));

    let mut disabled = added.clone();
    (disabled["status"], disabled["disabled_reason"]) = (json!("disabled"), json!("owner"));
    for _ in 0..2 {
        assert_eq!(cli.done(&format!("disable {id}")).await, disabled);
    }
    assert_eq!(cli.done(&list).await, json!([disabled]));
    let shown = cli.text(&list).await.stdout;
    assert!(shown.contains("disabled (owner)") && shown.contains(&format!("webhooks enable {id}")), "{shown}");
    for _ in 0..2 {
        assert_eq!(cli.done(&format!("enable {id}")).await, added);
    }

    assert_eq!(cli.done(&format!("remove {id}")).await, json!({"id": id, "ended_deliveries": 0}));
    assert_eq!(cli.done(&list).await, json!([]));
    assert_eq!(cli.refused(&format!("enable {id}")).await, format!("no endpoint has the id {id}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_refused_with_the_rule_that_it_breaks() {
    let mut cli = WebhooksCli::new().await;
    let add = |url: &str| format!("add --user {OWNER} --url {url} --event listing.sold");
    let local = ["http://127.0.0.1:9999/", "http://[::1]:25/", "http://localhost:9999/hook"];
    let long = format!("{URL}{}", "x".repeat(2_048));
    let bad = [
        ("http://10.0.0.1/", "must not name an address that is not public"),
        ("http://0x7f.1/", "must not name an address that is not public"),
        ("ftp://93.184.215.14/", "must be http or https"),
        ("https://me:secret@93.184.215.14/", "must have no user name and no password"),
        ("https://93.184.215.14:25/", "must use port 80, 443, or one from 1024 up"),
        (&long, "must have at most 2,048 characters"),
        ("hook", "must be an absolute URL"),
    ];
    for (url, rule) in bad {
        assert_eq!(cli.refused(&add(url)).await, format!("url: {rule}"), "{url}");
    }
    for url in local {
        assert!(cli.refused(&add(url)).await.starts_with("url: must "), "{url}");
    }
    assert_eq!(cli.done(&format!("list --user {OWNER}")).await, json!([]));

    cli.variables = cli.variables.with_loopback_webhooks();
    for url in local {
        assert_eq!(cli.done(&add(url)).await["url"], url);
    }
    for (url, rule) in &bad[2..] {
        assert_eq!(cli.refused(&add(url)).await, format!("url: {rule}"), "{url}");
    }
    assert!(cli.refused(&add("http://10.0.0.1/")).await.contains("not public"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_ten_endpoints_at_most() {
    let cli = WebhooksCli::new().await;
    let (first, _) = cli.add(OWNER).await;
    for _ in 1..10 {
        cli.add(OWNER).await;
    }
    let add = format!("add --user {OWNER} --url {URL} --event listing.sold");
    assert_eq!(cli.refused(&add).await, "the account has 10 endpoints already");
    cli.add(&uuid(1).to_string()).await;
    cli.done(&format!("remove {first}")).await;
    let (eleventh, _) = cli.add(OWNER).await;
    let listed = cli.done(&format!("list --user {OWNER}")).await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[9]["id"]), (10, &json!(eleventh)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_rotated_and_activated_but_not_twice_in_a_day() {
    let cli = WebhooksCli::new().await;
    let (id, first) = cli.add(OWNER).await;
    let rotate = format!("rotate-secret {id}");
    let activate = format!("{rotate} --activate");
    assert_eq!(cli.refused(&activate).await, "there is no next secret to activate");
    let second = text(&cli.done(&rotate).await["secret"]);
    // One that nobody may have seen is replaced.
    let third = text(&cli.done(&rotate).await["secret"]);
    assert!(first != second && second != third && third.starts_with("whsec_"));
    let activated = cli.done(&activate).await;
    assert_eq!((&activated["id"], &activated["secret"]), (&json!(id), &Value::Null));
    let refused = cli.refused(&rotate).await;
    assert!(refused.starts_with("the secret before the active one is valid until 2"), "{refused}");
    assert_eq!(cli.refused(&activate).await, "there is no next secret to activate");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_delivery_is_listed_shown_and_sent_again() {
    let cli = WebhooksCli::new().await;
    let (id, secret) = cli.add(OWNER).await;
    let first = text(&cli.done(&format!("test {id}")).await["delivery_id"]);
    let second = text(&cli.done(&format!("test {id} --event wallet.deposit")).await["delivery_id"]);
    assert_eq!((waiting(&cli, Lane::First).await, waiting(&cli, Lane::Retry).await), (2, 0));

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
        "failure": null, "attempts": [], "next_attempt_at": at[1], "created_at": at[1], "round": 1, "test": true,
        "body": shown["body"]});
    assert_eq!(shown, expected);

    assert_eq!(cli.done(&format!("resend {first}")).await, json!({"delivery_id": first}));
    assert_eq!((waiting(&cli, Lane::First).await, waiting(&cli, Lane::Retry).await), (2, 1));
    assert_eq!(cli.done(&show).await["round"], 2);

    cli.done(&format!("disable {id}")).await;
    let off = format!("endpoint {id} is disabled");
    assert_eq!(cli.refused(&format!("test {id}")).await, off);
    assert_eq!(cli.refused(&format!("resend {first}")).await, off);
    for line in [format!("list --user {OWNER}"), show.clone(), format!("deliveries {id}")] {
        let (people, programs) = (cli.text(&line).await, cli.text(&format!("{line} --json")).await);
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

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_refused_and_what_is_malformed_is_wrong_usage() {
    let cli = WebhooksCli::new().await;
    let unknown = uuid(1);
    for command in ["remove", "enable", "disable", "rotate-secret", "test", "deliveries"] {
        let refused = cli.refused(&format!("{command} {unknown}")).await;
        assert_eq!(refused, format!("no endpoint has the id {unknown}"), "{command}");
    }
    for command in ["show", "resend"] {
        let refused = cli.refused(&format!("{command} {unknown}")).await;
        assert!(refused.starts_with(&format!("no delivery has the id {unknown}")), "{command}: {refused}");
    }
    for line in [
        format!("add --user {OWNER} --url {URL}"),
        format!("add --user {OWNER} --url {URL} --event listing.bought"),
        format!("test {unknown} --event all"),
        format!("deliveries {unknown} --status gone"),
        "remove 42".to_owned(),
        String::new(),
    ] {
        let run = cli.text(&line).await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}: {run:?}");
    }
    let other = cli.text(&format!("list --user {OWNER} --stack other")).await;
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("nothing was done: queue other-webhooks-"), "{other:?}");
}

/// How many messages wait in a delivery queue.
async fn waiting(cli: &WebhooksCli, lane: Lane) -> u64 {
    cli.stack.webhooks().queues.waiting(lane).await.unwrap()
}
