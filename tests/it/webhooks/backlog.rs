//! A backlog that stays in the table while a queue is behind.

use futures_util::FutureExt;
use platform::resources::Queue;
use runtime::Worker;
use serde_json::{Value, json};
use sweep::Sweep;
use tests::{Listener, Proxy};
use webhooks::delivery::Status;

use super::Scene;

/// An instance of `sweep` that stays warm, and a proxy that records its calls.
struct WarmSweep {
    sweep: Sweep,
    proxy: Proxy,
}

impl WarmSweep {
    async fn start(scene: &Scene) -> Self {
        let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
        Self { sweep: scene.stack.sweep_at(&proxy.url), proxy }
    }

    /// Sweeps once. Returns the metrics of the run, and how often it read deliveries.
    async fn run(&self) -> (Value, usize) {
        let listener = Listener::start();
        self.sweep.work(Value::Null).boxed().await.unwrap();
        let reads = self.proxy.take_calls().iter().filter(|call| call.operation == "BatchGetItem").count();
        let [line] = &listener.take()[..] else { panic!("not one line") };
        (json!(line.metrics("sweep")), reads)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_sweep_reads_a_backlog_once_and_sends_the_retries_that_become_due_meanwhile() {
    const BACKLOG: u64 = 24;
    let scene = Scene::answering(500).await;
    let parked = scene.event(1_000).await;
    for _ in 0..3 {
        scene.attempt(parked).await;
    }
    assert_eq!(scene.standing(parked).await, (Status::Pending, 3));
    let [first, retry] = [scene.stack.queue(Queue::WebhooksFirst).await, scene.stack.queue(Queue::WebhooksRetry).await];
    first.purge().await;
    retry.purge().await;
    // The messages of these wait, so their queue may be behind.
    scene.wait(2 * 60);
    for event in 1..=BACKLOG {
        scene.stored(event.into()).await;
    }

    // They have been overdue for more than two minutes.
    let warm = WarmSweep::start(&scene).await;
    scene.wait(8 * 60);
    let (metrics, reads) = warm.run().await;
    assert_eq!(metrics, json!({"Waiting": BACKLOG}));
    assert!((1..=8).contains(&reads), "{reads}");
    scene.wait(60);
    assert_eq!(warm.run().await, (json!({"Waiting": BACKLOG}), 0));
    scene.wait(6 * 60);
    assert_eq!(warm.run().await, (json!({"Waiting": BACKLOG, "Parked": 1}), 1));

    // After ten minutes everything is read again.
    scene.wait(3 * 60);
    assert_eq!(warm.run().await, (json!({"Waiting": BACKLOG}), reads));
    scene.wait(60);
    assert_eq!(warm.run().await, (json!({"Waiting": BACKLOG}), 0));

    // Once the queues are no longer behind, the backlog is sent.
    for queue in [&first, &retry] {
        queue.take(usize::try_from(queue.visible_count().await).unwrap()).await;
    }
    let before = retry.count().await;
    assert_eq!(warm.run().await, (json!({"Overdue": BACKLOG}), reads));
    assert_eq!(retry.count().await, before + BACKLOG);
    assert_eq!(warm.run().await, (json!({}), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_sweep_reads_a_backlog_once_more() {
    let scene = Scene::answering(204).await;
    scene.stored(1).await;
    scene.wait(8 * 60);
    for _ in 0..2 {
        let sweep = WarmSweep::start(&scene).await;
        assert_eq!(sweep.run().await, (json!({"Waiting": 1}), 1));
        assert_eq!(sweep.run().await, (json!({"Waiting": 1}), 0));
    }
}
