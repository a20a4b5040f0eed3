//! Webhooks from the feed to the attempt. A deployed sender reaches only the public internet, where tests must not
//! send anything. So the receivers here have names that never resolve (RFC 6761), and every attempt fails.
//!
//! Webhook endpoints, managed with `marketctl`.

use common::resources::Queue;
use std::time::Duration;

use common::timestamp::Timestamp;
use serde_json::{Value, json};
use tests::webhooks_cli::{URL, WebhooksCli, text};
use tests::{Target, sale};
use tokio::time::{Instant, sleep};

/// A delivery that has not got this far by then never will.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

struct Scene {
    target: Target,
    cli: WebhooksCli,
}

impl Scene {
    async fn new() -> Self {
        let target = Target::new().await;
        let cli = WebhooksCli { variables: target.variables.clone() };
        Self { target, cli }
    }

    /// Adds an endpoint to the test's account. Returns its id.
    async fn endpoint(&self, event: &str) -> String {
        let (owner, word) = (self.target.uuid(1), self.target.word());
        let add = format!("add --user {owner} --url https://{word}.invalid/hook --event {event}");
        text(&self.cli.done(&add).await["id"])
    }

    /// Sends the same event, a sale of the test's account, this many times.
    async fn sell(&self, times: usize) {
        let mut sale = sale(1, self.target.uuid(1).into());
        sale["id"] = json!(self.target.uuid(1));
        self.target.queue(Queue::Feed).send(&vec![sale.to_string(); times]).await;
    }

    /// Runs a command until its document is as it should be. Returns the document.
    async fn until(&self, line: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let document = self.cli.done(line).await;
            if is_so(&document) {
                return document;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{line}: {document}");
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn deliveries(&self, endpoint: &str) -> Value {
        self.cli.done(&format!("deliveries {endpoint}")).await
    }
}

fn millis(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<Timestamp>().unwrap().millis()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_becomes_one_delivery_that_is_tried_again_after_half_a_minute_and_ends_with_its_endpoint() {
    let scene = Scene::new().await;
    let endpoint = scene.endpoint("listing.sold").await;
    scene.sell(2).await;
    let tried = |deliveries: &Value| deliveries[0]["attempts"] == 1;
    let deliveries = scene.until(&format!("deliveries {endpoint}"), tried).await;
    assert_eq!(deliveries.as_array().unwrap().len(), 1, "{deliveries}");

    let show = format!("show {}", text(&deliveries[0]["id"]));
    let shown = scene.cli.done(&show).await;
    assert_eq!(
        (&shown["status"], &shown["event"], &shown["round"]),
        (&json!("pending"), &json!("listing.sold"), &json!(1))
    );
    let first = &shown["attempts"][0];
    assert!(first["status"].is_null() && !text(&first["error"]).is_empty(), "{shown}");
    // The retry is due half a minute after the failure. The attempt itself may take ten seconds.
    let pause = millis(&shown["next_attempt_at"]) - millis(&first["at"]);
    assert!((30_000..42_000).contains(&pause), "{shown}");
    let body: Value = serde_json::from_str(shown["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["id"], &body["data"]["price_usd"]), (&shown["id"], &json!("12.50")));

    scene.target.wait(30).await;
    let again = scene.until(&show, |shown| shown["attempts"].as_array().unwrap().len() == 2).await;
    assert!(millis(&again["attempts"][1]["at"]) >= millis(&shown["next_attempt_at"]), "{again}");
    assert_eq!(scene.deliveries(&endpoint).await.as_array().unwrap().len(), 1);

    let removed = scene.cli.done(&format!("remove {endpoint}")).await;
    assert_eq!(removed, json!({"id": endpoint, "ended_deliveries": 1, "unfinished": false}));
    let shown = scene.cli.done(&show).await;
    assert_eq!((&shown["status"], &shown["failure"]), (&json!("failed"), &json!("endpoint_removed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_is_tried_once_and_once_more_when_it_is_resent() {
    let scene = Scene::new().await;
    let endpoint = scene.endpoint("listing.sold").await;
    let id = text(&scene.cli.done(&format!("test {endpoint} --event wallet.deposit")).await["delivery_id"]);
    let show = format!("show {id}");
    let shown = scene.until(&show, |shown| shown["status"] == "failed").await;
    assert_eq!(
        (&shown["event"], &shown["test"], &shown["next_attempt_at"]),
        (&json!("wallet.deposit"), &json!(true), &Value::Null)
    );
    assert_eq!((&shown["round"], shown["attempts"].as_array().unwrap().len()), (&json!(1), 1));
    scene.cli.done(&format!("resend {id}")).await;
    let again = scene.until(&show, |shown| shown["round"] == 2 && shown["status"] == "failed").await;
    assert_eq!(again["body"], shown["body"]);
    let listed = scene.cli.done(&format!("list --user {}", scene.target.uuid(1))).await;
    assert_eq!(listed[0]["status"], "enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_goes_to_the_endpoints_that_selected_it_and_is_held_for_those_that_are_off() {
    let scene = Scene::new().await;
    let (off, other) = (scene.endpoint("listing.sold").await, scene.endpoint("wallet.deposit").await);
    let on = scene.endpoint("listing.sold").await;
    scene.cli.done(&format!("disable {off}")).await;
    // Waits longer than a function may remember endpoints.
    scene.target.wait(3).await;
    scene.sell(1).await;
    scene.until(&format!("deliveries {on}"), |deliveries| deliveries[0]["attempts"] == 1).await;
    let held = scene.deliveries(&off).await;
    assert_eq!((&held[0]["status"], &held[0]["attempts"]), (&json!("held"), &json!(0)), "{held}");
    assert_eq!(scene.deliveries(&other).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_added_listed_switched_and_removed() {
    let Scene { target, cli } = Scene::new().await;
    let owner = target.uuid(1);
    let list = format!("list --user {owner}");
    assert_eq!(cli.done(&list).await, json!([]));
    let events = "--event wallet.deposit --event listing.sold --event listing.sold";
    let mut added = cli.done(&format!("add --user {owner} --url {URL} {events}")).await;
    let (id, secret) = (text(&added["id"]), text(&added["secret"]));
    assert!(secret.starts_with("whsec_"));
    let created_at = added["created_at"].clone();
    assert_eq!(
        added,
        json!({"user_id": owner, "endpoint_id": id, "id": id, "url": URL, "events": ["listing.sold", "wallet.deposit"], "status": "enabled",
            "disabled_reason": null, "disabled_at": null, "created_at": created_at,
            "next_secret_active_at": null, "old_secret_valid_until": null, "secret": secret})
    );
    added.as_object_mut().unwrap().remove("secret");
    let listed = async || {
        let mut rows = cli.done(&list).await;
        let row = rows[0].as_object_mut().unwrap();
        assert_eq!(row.remove("health").unwrap()["held"], 0);
        rows
    };
    assert_eq!(listed().await, json!([added]));

    let mut disabled = added.clone();
    (disabled["status"], disabled["disabled_reason"]) = (json!("disabled"), json!("owner"));
    for _ in 0..2 {
        let shown = cli.done(&format!("disable {id}")).await;
        assert!(shown["disabled_at"].as_str() >= created_at.as_str(), "{shown}");
        if disabled["disabled_at"].is_null() {
            disabled["disabled_at"] = shown["disabled_at"].clone();
        }
        assert_eq!(shown, disabled);
    }
    assert_eq!(listed().await, json!([disabled]));
    let shown = cli.run(&list).await.stdout;
    assert!(
        shown.contains("disabled (by owner or operator)") && shown.contains(&format!("webhooks enable {id}")),
        "{shown}"
    );
    for _ in 0..2 {
        assert_eq!(cli.done(&format!("enable {id}")).await, added);
    }

    assert_eq!(cli.done(&format!("remove {id}")).await, json!({"id": id, "ended_deliveries": 0, "unfinished": false}));
    assert_eq!(cli.done(&list).await, json!([]));
    assert_eq!(cli.refused(&format!("enable {id}")).await, format!("no endpoint has the id {id}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_refused_with_the_rule_that_it_breaks() {
    let Scene { target, mut cli } = Scene::new().await;
    let owner = target.uuid(1);
    let add = |url: &str| format!("add --user {owner} --url {url} --event listing.sold");
    let local = ["http://127.0.0.1:9999/", "http://[::1]:25/", "http://localhost:9999/hook"];
    let grows = format!("{URL}{}", "😀".repeat(180));
    let bad = [
        ("http://0x7f.1/", "must use a public IP address"),
        ("ftp://93.184.215.14/", "must be http or https"),
        ("https://93.184.215.14:25/", "must use port 80, 443, or one from 1024 up"),
        (&grows, "must have at most 2,048 characters, as written and after percent-encoding"),
    ];
    for (url, rule) in bad {
        assert_eq!(cli.refused(&add(url)).await, format!("invalid value for '--url': {rule}"), "{url}");
    }
    for url in local {
        assert!(cli.refused(&add(url)).await.starts_with("invalid value for '--url': must "), "{url}");
        let hint = cli.run(&add(url)).await.stderr;
        // A stack on AWS cannot be started so.
        assert!(target.is_shared() || hint.contains("--allow-loopback-webhooks"), "{url}: {hint}");
    }
    assert!(!cli.run(&add("http://10.0.0.1/")).await.stderr.contains("loopback"));
    assert_eq!(cli.done(&format!("list --user {owner}")).await, json!([]));

    cli.variables = cli.variables.with_loopback_webhooks();
    for url in local {
        assert_eq!(cli.done(&add(url)).await["url"], url);
    }
    for (url, rule) in &bad[1..] {
        assert_eq!(cli.refused(&add(url)).await, format!("invalid value for '--url': {rule}"), "{url}");
    }
    assert!(cli.refused(&add("http://10.0.0.1/")).await.contains("must use a public IP address"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_rotated_and_activated_but_not_twice_in_a_day() {
    let Scene { target, cli } = Scene::new().await;
    let owner = target.uuid(1);
    let (id, first) = cli.add(&owner.to_string()).await;
    let rotate = format!("rotate-secret {id}");
    let activate = format!("{rotate} --activate");
    assert_eq!(cli.refused(&activate).await, "there is no next secret to activate");
    let second = text(&cli.done(&rotate).await["secret"]);
    // A next secret that is not active yet is replaced.
    let third = text(&cli.done(&rotate).await["secret"]);
    assert!(first != second && second != third && third.starts_with("whsec_"));
    let activated = cli.done(&activate).await;
    assert_eq!((&activated["id"], &activated["secret"]), (&json!(id), &Value::Null));
    let refused = cli.refused(&rotate).await;
    assert!(refused.starts_with("the previous secret is valid until 2"), "{refused}");
    assert_eq!(cli.refused(&activate).await, "there is no next secret to activate");
    let expire = format!("{rotate} --expire-old");
    assert_eq!(cli.done(&expire).await["id"], json!(id));
    assert_eq!(cli.refused(&expire).await, "there is no old secret that is still valid");
    assert!(cli.done(&rotate).await["secret"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ids_are_refused_and_malformed_ones_are_wrong_usage() {
    let Scene { target, cli } = Scene::new().await;
    let owner = target.uuid(1);
    let unknown = target.uuid(2);
    for command in ["remove", "enable", "disable", "rotate-secret", "test", "deliveries", "show-endpoint"] {
        let refused = cli.refused(&format!("{command} {unknown}")).await;
        assert_eq!(refused, format!("no endpoint has the id {unknown}"), "{command}");
    }
    for command in ["show", "resend"] {
        let refused = cli.refused(&format!("{command} {unknown}")).await;
        assert!(refused.starts_with(&format!("no delivery has the id {unknown}")), "{command}: {refused}");
    }
    for line in [
        format!("add --user {owner} --url {URL}"),
        format!("add --user {owner} --url {URL} --event listing.bought"),
        format!("test {unknown} --event all"),
        format!("deliveries {unknown} --status gone"),
        "remove 42".to_owned(),
        String::new(),
    ] {
        let run = cli.run(&line).await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}: {run:?}");
    }
    let other = cli.run(&format!("list --user {owner} --stack other")).await;
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("there is no stack `other` here"), "{other:?}");
}
