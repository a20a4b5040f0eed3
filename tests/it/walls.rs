//! What a panic in the middle of some work costs: that work alone. The instance goes on, the rest of a batch or a run is
//! done, and what panicked comes again. `lambda.rs` shows the same of the runtime, and what is logged.

use aws_lambda_events::sqs::SqsMessage;
use common::resources::Queue;
use common::runtime::Worker;
use common::scope::Scope;
use serde_json::{Value, json};
use tests::{Listener, Stack, hand, item, listing, uuid};
use webhooks::delivery::Status;

use crate::pretraffic::Scene as HookScene;
use crate::webhooks::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_panics_gets_a_500_and_no_other_request_notices() {
    let stack = Stack::new().await;
    stack.feed(&[item("fine", "skin", None, 1), item("doomed", "skin", None, 1)]).await;
    let (running, key) = (stack.instance().await, stack.key(&[Scope::CatalogRead]).await);
    let get = async |id: &str| running.client.get(&key, &format!("/v1/public/items/{id}")).await;
    stack.ledger.panic_about(Some("doomed"));
    let (doomed, fine) = tokio::join!(get("doomed"), get("fine"));
    assert_eq!((doomed.status, doomed.json()), (500, json!({"message": "Internal Server Error"})));
    assert_eq!((fine.status, get("fine").await.status), (200, 200));
    stack.ledger.panic_about(None);
    assert_eq!(get("doomed").await.status, 200);
}

#[tokio::test(flavor = "current_thread")]
async fn a_message_of_the_feed_that_panics_comes_again_and_the_others_are_applied() {
    let stack = Stack::new().await;
    let ingest = stack.ingest_at(&stack.aws.endpoint_url);
    let queue = stack.queue(Queue::Feed);
    let messages =
        [item("fine", "skin", None, 1), item("doomed", "skin", None, 1), listing(1, "1.00", "2026-11-20T10:00:00Z", 1)];
    queue.send(&messages.map(|message| message.to_string())).await;
    let batch: Vec<SqsMessage> = queue.take(3).await;
    let doomed = batch.iter().position(|record| record.body.as_ref().unwrap().contains("doomed")).unwrap();
    let listener = Listener::start();
    stack.ledger.panic_about(Some("doomed"));
    assert_eq!(hand(&ingest, &batch).await, [doomed]);
    let panicked: Vec<Value> = listener.take().into_iter().map(|line| line.json).collect();
    let panicked: Vec<_> = panicked.iter().filter(|line| line["message"] == "a message panicked").collect();
    let [line] = &panicked[..] else { panic!("not one line: {panicked:?}") };
    assert_eq!((&line["Defects"], &line["message_id"]), (&json!(1), &json!(batch[doomed].message_id)));
    stack.ledger.panic_about(None);
    assert_eq!(hand(&ingest, &batch[doomed..=doomed]).await, [0; 0]);
    let (running, key) = (stack.instance().await, stack.full_key().await);
    for path in ["/v1/public/catalog", "/v1/public/items/fine", "/v1/public/items/doomed", "/v1/public/listings"] {
        assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_panics_comes_again_and_the_others_are_made() {
    let scene = Scene::answering(204).await;
    let other = scene.other(6).await;
    let (doomed, fine, beside) = (scene.event(1).await, other.event(2).await, scene.event(3).await);
    let next = async |id| scene.stack.next_message(id).await;
    let batch = [next(doomed).await, next(fine).await, next(beside).await];
    let sender = scene.stack.sender();
    // The delivery is stored under this id.
    scene.stack.ledger.panic_about(Some(&format!("delivery#{doomed}")));
    assert_eq!(hand(&sender, &batch).await, [0]);
    assert_eq!(other.standing(fine).await.0, Status::Delivered);
    assert_eq!(scene.standing(beside).await.0, Status::Delivered);
    scene.stack.ledger.panic_about(None);
    assert_eq!(hand(&sender, &batch[..1]).await, [0; 0]);
    assert_eq!(scene.standing(doomed).await.0, Status::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_panics_comes_again_and_the_others_are_run() {
    let scene = Scene::answering(204).await;
    let other = scene.other(6).await;
    let stack = &scene.stack;
    let ids = [scene.event(1).await, other.event(2).await];
    for (id, of) in ids.into_iter().zip([&scene, &other]) {
        stack.store_carried(id).await;
        stack.webhooks().drains.wake(of.endpoint.account_id, stack.now()).await.unwrap();
    }
    stack.clock.advance(std::time::Duration::from_mins(5));
    let drains =
        [stack.drain_message(scene.endpoint.account_id).await, stack.drain_message(other.endpoint.account_id).await];
    stack.ledger.panic_about(Some(&format!("delivery#{}", ids[0])));
    assert_eq!(hand(&stack.sender(), &drains).await, [0]);
    assert_eq!(other.standing(ids[1]).await.0, Status::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_panics_fails_the_sweep_after_the_others_are_swept() {
    let stack = Stack::new().await;
    let (store, now) = (stack.webhooks().store, stack.now());
    for user in 1..=3 {
        store.wake_drain_by(uuid(user).into(), now, now).await.unwrap();
    }
    let sweep = stack.sweep_at(&stack.aws.endpoint_url);
    let slow = stack.queue(Queue::WebhooksSlow);
    stack.ledger.panic_about(Some(&uuid(2).to_string()));
    assert!(sweep.work(Value::Null).await.unwrap_err().to_string().contains("a row panicked"));
    assert_eq!(slow.count().await, 2);
    stack.ledger.panic_about(None);
    sweep.work(Value::Null).await.unwrap();
    assert_eq!(slow.count().await, 5, "the messages of the others come once more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_panics_fails_the_run_after_the_other_is_compacted() {
    let stack = Stack::new().await;
    stack.feed(&[item("fine", "skin", None, 1), listing(1, "1.00", "2026-11-20T10:00:00Z", 1)]).await;
    let compact = stack.compact();
    compact.warm_up().await.unwrap();
    let listener = Listener::start();
    for (doomed, other) in [("catalog", "listings"), ("listings", "catalog")] {
        stack.ledger.panic_about(Some(doomed));
        assert!(compact.work(Value::Null).await.unwrap_err().to_string().contains("a compaction panicked"));
        let lines = listener.take();
        for (stream, has_failed) in [(doomed, true), (other, false)] {
            let line = lines.iter().find(|line| line.json["stream"] == stream).unwrap();
            assert_eq!(line.json["message"] == "compaction failed", has_failed, "{}", line.json);
        }
    }
    stack.ledger.panic_about(None);
    compact.work(Value::Null).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_panics_tells_codedeploy_so() {
    let scene = HookScene::new().await;
    scene.stack.ledger.panic_about(Some("marketplace-sweep"));
    assert_eq!(scene.reported(|_| tests::Fault::None).await.0, "Failed");
}
