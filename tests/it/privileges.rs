//! The template gives functions nothing that they do not use: these tests make each function do everything that it
//! does. That it gives them everything they use is checked by every test that runs a function.

use std::collections::BTreeSet;

use api::auth::{KeyText, STRANGERS_A_SECOND};
use api::routes::CHANGES;
use common::ids::UserId;
use common::resources::Queue;
use common::runtime::Worker;
use common::scope::Scope;
use local::workers::INGEST_INSTANCES;
use serde_json::Value;
use tests::{Fault, FunctionGrant, PATHS, Receiver, Stack, Template, balance, hand, market, sale, uuid};
use webhooks::ATTEMPTS;
use webhooks::delivery::Status;

use crate::account::Settings;
use crate::pretraffic::Scene as HookScene;
use crate::webhooks::Scene;

/// What each function has used.
type Used = BTreeSet<(String, FunctionGrant)>;

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_given_nothing_that_they_do_not_use() {
    let (requests, feed, deliveries, account, rollouts) =
        tokio::join!(requests_made(), feed_applied(), deliveries_made(), settings_made(), rollouts_made());
    let used: Used = [requests, feed, deliveries, account, rollouts].into_iter().flatten().collect();
    let mut surplus = Vec::new();
    for (name, function) in &Template::read().functions {
        for grant in &function.grants {
            if !used.contains(&(name.clone(), grant.clone())) {
                surplus.push(format!("{name} does not use {grant}, which template.yaml gives it"));
            }
        }
    }
    assert!(surplus.is_empty(), "{}", surplus.join("\n"));
}

/// Requests to every route, and the compactions that write the bases.
async fn requests_made() -> Used {
    let (stack, user) = (Stack::new().await, uuid(5).into());
    stack.feed(&market(user)).await;
    // An instance that starts without a base reads the entities.
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    let first = stack.instance().await;
    for path in ["/v1/public/catalog", "/v1/public/listings"] {
        assert_eq!(first.client.get(&key, path).await.status, 200, "{path}");
    }
    // The first run makes a base from the entities; the second instance reads it.
    for _ in 0..2 {
        let compact = stack.compact();
        compact.warm_up().await.unwrap();
        compact.work(Value::Null).await.unwrap();
    }
    let running = stack.instance().await;
    let paths = PATHS.iter().map(|(path, _)| path.as_str());
    let others = ["/v1/public/items/ak-47-redline?include=prices", "/v1/openapi.json", "/docs", "/"];
    for path in paths.chain(others) {
        let status = running.client.get(&key, path).await.status;
        assert_eq!(status, if path == "/" { 404 } else { 200 }, "{path}");
    }
    // Only a position that the log does not show is compared with the head.
    let beyond = format!("{}?after=1000000", CHANGES.path);
    assert_eq!(running.client.get(&key, &beyond).await.status, 400);
    // Of many keys that an instance has never admitted, it reads whether they are there.
    for (path, _) in PATHS.iter() {
        for number in 0..=u8::try_from(STRANGERS_A_SECOND).unwrap() {
            let invented = KeyText::from_bits([number; 32]);
            assert_eq!(running.client.get(invented.reveal(), path).await.status, 401, "{path}");
        }
    }
    // Only behind an edge do the functions look for its secret.
    stack.instance_behind_edge("hush").await;
    stack.ledger.used()
}

/// More than the instances of `ingest` let into the first lane within a second. The rest go to the retry lane.
const SALES: u128 = 10 * INGEST_INSTANCES as u128 + 1;

async fn feed_applied() -> Used {
    let (stack, receiver) = (Stack::new().await, Receiver::answering(204).await);
    let users: [UserId; 2] = [uuid(5).into(), uuid(6).into()];
    stack.prove(&stack.endpoint(users[0], &receiver.url).await.0).await;
    // The first delivery of a new endpoint waits for the drain of its account, which the slow lane calls.
    stack.endpoint(users[1], &receiver.url).await;

    let queue = stack.queue(Queue::Feed);
    let (_workers, proxy) = stack.workers_behind_proxy().await;
    let sales = (1..=SALES).map(|event| sale(event, users[0])).chain([sale(SALES + 1, users[1])]);
    let messages = market(users[0]).into_iter().chain(sales);
    queue.send(&messages.map(|message| message.to_string()).chain(["{}".to_owned()]).collect::<Vec<_>>()).await;
    receiver.received(usize::try_from(SALES).unwrap() + 1).await;
    queue.wait_until_empty().await;
    // The run goes on to look for more before its message is deleted.
    stack.queue(Queue::WebhooksSlow).wait_until_empty().await;

    let mut postponed = false;
    proxy.plan(move |operation| {
        postponed |= operation == "SendMessageBatch";
        if operation == "PutItem" && !postponed { Fault::Refuse } else { Fault::None }
    });
    queue.send(&[balance(users[0], "1.00", "2.00", "3.00", 2).to_string()]).await;
    queue.wait_until_empty().await;
    stack.ledger.used()
}

/// Everything that can happen to a delivery: it is held, fails for good, waits for a drain, or loses its endpoint.
async fn deliveries_made() -> Used {
    let scene = Scene::answering(500).await;
    held(&scene).await;
    given_up(&scene).await;
    defective(&scene).await;
    drained(&scene).await;
    removed(&scene).await;
    scene.stack.ledger.used()
}

/// A delivery is held because its endpoint is off when the message comes.
async fn held(scene: &Scene) {
    let id = scene.event(1).await;
    let message = [scene.stack.next_message(id).await];
    let admin = scene.stack.webhooks();
    admin.disable(scene.endpoint.id).await.unwrap();
    hand(&scene.stack.sender(), &message).await;
    assert_eq!(scene.standing(id).await, (Status::Held, 0));
    admin.enable(scene.endpoint.id).await.unwrap();
}

/// Two deliveries fail for good. The notice of the first is sent at once, the notice of the second by the sweep.
async fn given_up(scene: &Scene) {
    for (event, fault) in [(2, Fault::None), (3, Fault::Refuse)] {
        let id = scene.before_last(event).await;
        let message = [scene.stack.next_message(id).await];
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        proxy.plan(move |operation| if operation == "SendMessage" { fault.clone() } else { Fault::None });
        hand(&sender, &message).await;
        assert_eq!(scene.standing(id).await, (Status::Failed, ATTEMPTS as usize));
        scene.wait(2 * 60);
        sweep(scene).await;
        assert_eq!(scene.stack.take_notices().await.len(), 1);
        scene.stack.webhooks().enable(scene.endpoint.id).await.unwrap();
    }
}

/// The store takes the claim of a delivery for invalid. Afterwards the delivery is held, so that no drain finds it.
async fn defective(scene: &Scene) {
    let id = scene.stored(6).await;
    let message = [scene.stack.next_message(id).await];
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| match operation {
        "PutItem" | "UpdateItem" => Fault::Error("ValidationException"),
        _ => Fault::None,
    });
    hand(&sender, &message).await;
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).take_letters(1).await.len(), 1);
    let admin = scene.stack.webhooks();
    admin.disable(scene.endpoint.id).await.unwrap();
    hand(&scene.stack.sender(), &message).await;
    assert_eq!(scene.standing(id).await, (Status::Held, 0));
    admin.enable(scene.endpoint.id).await.unwrap();
}

/// A delivery waits for its drain, whose message is lost. A sweep calls the drain again.
async fn drained(scene: &Scene) {
    let account = scene.endpoint.account_id;
    let endpoint = scene.stack.endpoint_of(account).await;
    assert!(
        scene
            .stack
            .webhooks()
            .store
            .mark_prompt(&endpoint, false, scene.stack.now().plus_millis(-300_000))
            .await
            .unwrap()
    );
    let id = scene.event(4).await;
    let message = [scene.stack.next_message(id).await];
    hand(&scene.stack.sender(), &message).await;
    let slow = scene.stack.queue(Queue::WebhooksSlow);
    slow.purge().await;
    scene.wait(5 * 60);
    sweep(scene).await;
    assert_eq!((slow.count().await, scene.standing(id).await), (1, (Status::Pending, 0)));
    scene.stack.drain(account).await;
    assert_eq!(scene.standing(id).await, (Status::Pending, 1));
}

/// A drain ends what its removed endpoint has left.
async fn removed(scene: &Scene) {
    scene.stack.webhooks().remove(scene.endpoint.id).await.unwrap();
    scene.stack.drain(scene.endpoint.account_id).await;
}

async fn sweep(scene: &Scene) {
    let sweep = scene.stack.sweep_at(&scene.stack.aws.endpoint_url);
    sweep.warm_up().await.unwrap();
    sweep.work(Value::Null).await.unwrap();
}

/// Every command of the account's settings.
async fn settings_made() -> Used {
    let settings = Settings::new().await;
    settings.walk().await;
    settings.stack.ledger.used()
}

/// The pre-traffic hook: it lets new versions through, and makes way when no concurrency is left.
async fn rollouts_made() -> Used {
    let scene = HookScene::new().await;
    scene.walk().await;
    scene.stack.ledger.used()
}
