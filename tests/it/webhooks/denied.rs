//! Webhooks that `ingest` may not use: the feed's data does not wait for them.

use platform::resources::Queue;
use tests::{Fault, hand, item, sale};

use super::Scene;
use super::unreadable::feed_message;

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_is_applied_while_webhooks_may_not_be_used_and_events_wait() {
    let scene = Scene::answering(204).await;
    let proxy = tests::Proxy::start(&scene.stack.aws.endpoint_url).await;
    let ingest = scene.stack.ingest_at(&proxy.url);
    let [feed, dead, first] =
        [Queue::Feed, Queue::FeedDead, Queue::WebhooksFirst].map(|queue| scene.stack.queue(queue));
    let (feed, dead, first) = tokio::join!(feed, dead, first);
    let mut batch = vec![feed_message(&item("ak", "skin", Some("AK"), 1)), feed_message(&sale(1, scene.user))];
    proxy.plan(|operation| match operation {
        "BatchGetItem" => Fault::Error("AccessDeniedException"),
        _ => Fault::None,
    });
    for _ in 0..2 {
        assert_eq!(hand(&ingest, &batch).await, [0; 0]);
        assert_eq!((feed.count().await, first.count().await), (1, 0), "a copy of the event waits");
        batch = feed.take(1).await;
    }
    let catalog = scene.stack.instance().await.client.get(&scene.stack.full_key().await, "/v1/public/catalog").await;
    assert_eq!(catalog.json()["total"], 1);

    proxy.set_fault(Fault::None);
    assert_eq!(hand(&ingest, &batch).await, [0; 0]);
    assert_eq!((feed.count().await, dead.count().await, first.count().await), (0, 0, 1));
}
