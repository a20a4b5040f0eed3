//! `marketctl dead-letters`: what an operator sees of messages that were not handled, and how they come back.

use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use common::ids::UserId;
use common::resources::Queue;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::text;
use tests::{Fault, Program, Proxy, Receiver, Stack, audited_marketctl, item, listing, sale, uuid};

/// The operator of a stack.
struct Operator(Variables);

impl Operator {
    fn of(endpoint_url: &str) -> Self {
        Self(Variables::new(endpoint_url))
    }

    /// Runs a command of `dead-letters`. Returns what it printed, and its audit lines.
    async fn run(&self, line: &str, input: &str) -> (Program, Vec<Value>) {
        let arguments: Vec<&str> = ["dead-letters"].into_iter().chain(line.split_whitespace()).collect();
        audited_marketctl(&self.0, &arguments, input).await
    }

    /// Runs a command that must succeed. Returns its document.
    async fn done(&self, line: &str) -> Value {
        let (run, _) = self.run(&format!("{line} --json"), "").await;
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{line}: {run:?}");
        run.json()
    }

    /// Runs a command that must leave something or be refused. Returns its document and its error.
    async fn failed(&self, line: &str, input: &str) -> (Option<Value>, Value) {
        let (run, audit) = self.run(&format!("{line} --json"), input).await;
        assert_eq!((run.code, audit.iter().any(|line| line["outcome"] != "done")), (1, false), "{line}: {run:?}");
        (serde_json::from_str(&run.stdout).ok(), serde_json::from_str(&run.stderr).unwrap())
    }
}

/// Puts a message into a dead-letter queue with these attributes, as a function does.
async fn bury(stack: &Stack, queue: Queue, body: &str, attributes: &[(&str, &str)]) {
    let queue = stack.queue(queue);
    let entry = SendMessageBatchRequestEntry::builder().id("0").message_body(body);
    let entry = attributes.iter().fold(entry, |entry, (name, value)| {
        let value = MessageAttributeValue::builder().data_type("String").string_value(*value).build().unwrap();
        entry.message_attributes(*name, value)
    });
    let request = queue.client.send_message_batch().queue_url(&queue.url).entries(entry.build().unwrap());
    assert!(request.send().await.unwrap().failed.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_is_found_mended_and_applied() {
    let stack = Stack::new().await;
    let (operator, dead) = (Operator::of(&stack.aws.endpoint_url), stack.queue(Queue::FeedDead));
    let _workers = stack.workers().await;
    let mut bad: Vec<Value> = ["a", "b"].map(|id| item(id, "skin", None, 1)).to_vec();
    for message in &mut bad {
        message["kind"] = json!(7);
    }
    let good = listing(1, "1.00", "2024-11-20T10:00:00Z", 1);
    let mut free = good.clone();
    free["price_usd"] = json!("free");
    for (number, message) in bad.iter().chain([&free]).enumerate() {
        stack.queue(Queue::Feed).send(&[message.to_string()]).await;
        dead.wait_for_count(number as u64 + 1).await;
    }

    let all = operator.done("list").await;
    let seen: Vec<_> = all["letters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| json!([letter["queue"], letter["cause"], letter["type"], letter["entity"], letter["field"]]))
        .collect();
    let about_kind = |id: &str| json!(["feed", "refused", "item", id, "kind"]);
    let of_listing = json!(["feed", "refused", "listing", free["id"], "price_usd"]);
    assert_eq!(seen, [about_kind("a"), about_kind("b"), of_listing], "oldest first");
    let counts: Vec<_> =
        all["reasons"].as_array().unwrap().iter().map(|of| json!([of["letters"], of["field"]])).collect();
    assert_eq!(counts, [json!([2, "kind"]), json!([1, "price_usd"])]);
    assert_eq!((&all["found"], &all["hidden"], dead.visible_count().await), (&json!(3), &json!(0), 3));
    let some = operator.done("list --queue feed --reason kind: --limit 1").await;
    assert_eq!((&some["found"], some["letters"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    let id = text(&operator.done(&format!("list --entity {}", text(&free["id"]))).await["letters"][0]["message_id"]);

    // As it is, it would only come back.
    let (report, error) = operator.failed(&format!("resend {id}"), "").await;
    assert_eq!(report.map(|report| json!([report["resent"], report["deleted"]])), Some(json!([0, 0])));
    assert!(text(&error["left"][0]["reason"]).starts_with("it would be refused again: price_usd: "), "{error}");
    let (report, error) = operator.failed(&format!("resend {id} --file -"), &bad[0].to_string()).await;
    assert_eq!(report, None, "nothing was done");
    assert!(text(&error["error"]).starts_with("the message of --file would be refused: kind: "), "{error}");
    assert_eq!(dead.visible_count().await, 3);

    let (shown, _) = operator.run(&format!("show {id}"), "").await;
    let why = format!("It was refused: price_usd: {}", text(&all["letters"][2]["reason"]));
    assert!(shown.stdout.contains(&why) && shown.stdout.contains(&free.to_string()), "{shown:?}");
    let (body, _) = operator.run(&format!("show {id} --body"), "").await;
    assert_eq!(body.stdout.trim_end(), free.to_string());
    let pretty = serde_json::to_string_pretty(&good).unwrap();
    let (run, audit) = operator.run(&format!("resend {id} --file - --json"), &pretty).await;
    assert_eq!((run.code, run.json()), (0, json!({"resent": 1, "deleted": 1, "left": [], "more": 0})), "{run:?}");
    let audit: Vec<_> = audit
        .iter()
        .map(|line| json!([line["command"], line["message_id"], line["user_id"], line["outcome"]]))
        .collect();
    assert_eq!(audit, [json!(["dead_letters.resend", id, free["account_id"], "done"])]);
    stack.queue(Queue::Feed).wait_until_empty().await;
    assert_eq!(dead.count().await, 2);
    let listings = stack.instance().await.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(listings.json()["total"], 1);
    let (_, error) = operator.failed(&format!("resend {id}"), "").await;
    assert!(text(&error["left"][0]["reason"]).starts_with("there is no such dead letter"), "{error}");

    let (run, audit) = operator.run("delete --all --queue feed --entity b --json", "").await;
    assert_eq!(run.json(), json!({"resent": 0, "deleted": 1, "left": [], "more": 0}));
    assert_eq!((audit.len(), &audit[0]["command"]), (1, &json!("dead_letters.delete")));
    let left = operator.done("list").await;
    assert_eq!((&left["found"], &left["letters"][0]["entity"]), (&json!(1), &json!("a")));
    operator.done(&format!("delete {}", text(&left["letters"][0]["message_id"]))).await;
    assert_eq!(operator.done("list").await["found"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_letter_is_counted_once_although_others_hold_some_and_each_can_be_received_afterwards() {
    let stack = Stack::new().await;
    let dead = stack.queue(Queue::FeedDead);
    for number in 0..25 {
        bury(&stack, Queue::FeedDead, &item(&format!("i{number}"), "skin", None, 1).to_string(), &[]).await;
    }
    let hold = dead.client.receive_message().queue_url(&dead.url).max_number_of_messages(3).visibility_timeout(600);
    assert_eq!(hold.send().await.unwrap().messages().len(), 3);
    let operator = Operator::of(&stack.aws.endpoint_url);
    let listed = operator.done("list --limit 100").await;
    let mut ids: Vec<_> = listed["letters"].as_array().unwrap().iter().map(|letter| text(&letter["entity"])).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), &listed["found"], &listed["hidden"]), (22, &json!(22), &json!(3)));
    assert_eq!(listed["reasons"][0]["letters"], 22);
    assert_eq!(dead.visible_count().await, 22);
    let (run, _) = operator.run("list --queue feed", "").await;
    for line in ["These are the 20 oldest of 22.", "      22  feed: no reason is attached", "About 3 more are hidden"] {
        assert!(run.stdout.contains(line), "{line}: {run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_letter_could_not_be_deleted_is_sent_twice_and_applied_once() {
    let stack = Stack::new().await;
    let (feed, dead) = (stack.queue(Queue::Feed), stack.queue(Queue::FeedDead));
    let policy =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:marketplace-feed-dead","maxReceiveCount":1}"#;
    feed.set_attribute(QueueAttributeName::RedrivePolicy, policy).await;
    feed.send(&[item("a", "skin", None, 1).to_string()]).await;
    for _ in 0..2 {
        feed.client.receive_message().queue_url(&feed.url).visibility_timeout(0).send().await.unwrap();
    }
    dead.wait_for_count(1).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let operator = Operator::of(&proxy.url);
    let listed = operator.done("list").await;
    let [letter] = &listed["letters"].as_array().unwrap()[..] else { panic!("not one letter: {listed}") };
    assert_eq!(json!([letter["cause"], letter["entity"], letter["field"]]), json!(["received", "a", null]));
    assert_eq!(letter["reason"], "received 1,000 times without success");

    proxy.plan(|operation| if operation == "DeleteMessage" { Fault::Error("AccessDenied") } else { Fault::None });
    let (report, error) = operator.failed("resend --all --queue feed", "").await;
    let report = report.unwrap();
    assert_eq!((&report["resent"], &report["deleted"]), (&json!(1), &json!(0)));
    assert!(text(&error["left"][0]["reason"]).starts_with("it was sent, but not deleted here: "), "{error}");
    proxy.set_fault(Fault::None);
    let report = operator.done("resend --all --queue feed").await;
    assert_eq!((&report["resent"], &report["deleted"], dead.count().await), (&json!(1), &json!(1), 0));
    assert_eq!(feed.count().await, 2);
    feed.set_attribute(QueueAttributeName::RedrivePolicy, &policy.replace("\":1}", "\":9}")).await;
    let _workers = stack.workers().await;
    feed.wait_until_empty().await;
    let catalog = stack.instance().await.client.get(&stack.full_key().await, "/v1/public/catalog").await;
    assert_eq!((&catalog.json()["total"], dead.count().await), (&json!(1), 0));
    tests::assert_the_log_tells_all(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_whose_message_was_dead_twice_is_delivered_once() {
    let stack = Stack::new().await;
    let (user, receiver): (UserId, _) = (uuid(5).into(), Receiver::answering(204).await);
    let (endpoint, _) = stack.endpoint(user, &receiver.url).await;
    stack.prove(&endpoint).await;
    stack.fan_out(&[sale(1, user)]).await;
    let [message] = &stack.queue(Queue::WebhooksFirst).take(1).await[..] else { panic!("not one message") };
    let body = message.body.as_deref().unwrap();
    let attempt = json!({
        "type": "attempt", "delivery_id": uuid(1), "account_id": user, "endpoint_id": endpoint.id, "round": 1, "attempt": 2,
        "token": uuid(9),
    });
    let drain = json!({"type": "drain", "account_id": user, "token": uuid(9)});
    for body in [body, body, &attempt.to_string(), &drain.to_string(), "{}"] {
        bury(&stack, Queue::WebhooksDead, body, &[("defect", "unreadable row: x")]).await;
    }
    let operator = Operator::of(&stack.aws.endpoint_url);
    let id = text(&serde_json::from_str::<Value>(body).unwrap()["delivery_id"]);
    let listed = operator.done(&format!("list --queue webhooks --entity {id}")).await;
    assert_eq!((&listed["found"], &listed["letters"][0]["cause"]), (&json!(2), &json!("defect")));
    let letter = text(&listed["letters"][0]["message_id"]);
    let (_, error) =
        operator.failed(&format!("resend {letter} --file -"), &item("a", "skin", None, 1).to_string()).await;
    assert_eq!(error["left"][0]["reason"], "only a message of the feed can be replaced");

    let (report, error) = operator.failed("resend --all --queue webhooks", "").await;
    let report = report.unwrap();
    assert_eq!((&report["resent"], &report["deleted"]), (&json!(4), &json!(4)));
    assert!(
        text(&error["left"][0]["reason"]).starts_with("it would be refused again: unreadable message: "),
        "{error}"
    );
    for (lane, count) in [(Queue::WebhooksFirst, 2), (Queue::WebhooksRetry, 1), (Queue::WebhooksSlow, 1)] {
        assert_eq!(stack.queue(lane).count().await, count, "{lane:?}");
    }
    let _workers = stack.workers().await;
    for lane in Queue::LANES {
        stack.queue(lane).wait_until_empty().await;
    }
    assert_eq!(receiver.received(1).await.len(), 1);
    assert_eq!(stack.queue(Queue::WebhooksDead).count().await, 1, "the one that cannot be read");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_said_clearly_is_wrong_usage() {
    let stack = Stack::new().await;
    let (operator, id) = (Operator::of(&stack.aws.endpoint_url), uuid(1));
    for line in [
        "resend".to_owned(),
        "delete".to_owned(),
        "delete --all".to_owned(),
        "delete --all --queue other".to_owned(),
        format!("delete {id} --all --queue feed"),
        format!("delete {id} --reason x"),
        format!("resend {id} {id} --file -"),
        "resend --all --queue feed --file -".to_owned(),
        "show 42".to_owned(),
        "list --limit 0".to_owned(),
    ] {
        let (run, _) = operator.run(&line, "").await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}: {run:?}");
    }
}
