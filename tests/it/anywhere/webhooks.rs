//! Webhooks from the feed to the attempt. A deployed sender reaches only the public internet, where tests must not
//! send anything. So the receivers here have names that never resolve (RFC 6761), and every attempt fails.

use std::time::Duration;

use serde_json::{Value, json};
use tests::webhooks_cli::{WebhooksCli, text};
use tests::{Target, sale};
use tokio::time::{Instant, sleep};
use types::timestamp::Timestamp;

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
        self.target.feed_queue().send(&vec![sale.to_string(); times]).await;
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
async fn an_event_becomes_one_delivery_that_is_tried_and_tried_again_after_half_a_minute() {
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
async fn removing_an_endpoint_ends_its_deliveries() {
    let scene = Scene::new().await;
    let endpoint = scene.endpoint("listing.sold").await;
    scene.sell(1).await;
    let tried = |deliveries: &Value| deliveries[0]["attempts"] == 1;
    let deliveries = scene.until(&format!("deliveries {endpoint}"), tried).await;
    let removed = scene.cli.done(&format!("remove {endpoint}")).await;
    assert_eq!(removed, json!({"id": endpoint, "ended_deliveries": 1, "unfinished": false}));
    let shown = scene.cli.done(&format!("show {}", text(&deliveries[0]["id"]))).await;
    assert_eq!((&shown["status"], &shown["failure"]), (&json!("failed"), &json!("endpoint_removed")));
}
