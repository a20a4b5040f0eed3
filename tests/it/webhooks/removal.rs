//! An endpoint is removed while its deliveries are under way.
//!
//! Changing an endpoint's URL and events.

use std::cell::Cell;
use std::collections::BTreeSet;

use admin::webhooks::EndpointUpdate;
use platform::resources::Queue;
use tests::{Answer, Fault, Receiver, hand, sale, uuid};
use types::event::EventKind;
use webhooks::delivery::{Failure, Status};
use webhooks::delivery_id;
use webhooks::drain::GRACE_SECONDS;
use webhooks::endpoint::{Switch, WebhookEndpoint};

use super::unreadable::feed_message;
use super::{OFF_BY_FAILURES, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn every_delivery_of_a_removed_endpoint_ends_and_nothing_more_is_sent() {
    let scene = Scene::with(|number| if number <= 4 { Answer::Status(500) } else { Answer::Held(500) }).await;
    let (stack, admin, sender) = (&scene.stack, scene.stack.webhooks(), scene.stack.sender());
    let (parked, delayed) = (scene.event(1).await, scene.event(2).await);
    for id in [parked, parked, parked, delayed] {
        scene.attempt(id).await;
    }
    admin.disable(scene.endpoint.id).await.unwrap();
    let held = scene.event(3).await;
    scene.attempt(held).await;
    admin.enable(scene.endpoint.id).await.unwrap();
    let (queued, open) = (scene.stored(4).await, scene.event(5).await);
    let mut messages = Vec::new();
    for id in [parked, delayed, queued, open] {
        messages.push(stack.next_message(id).await);
    }
    let removed = async {
        scene.receiver.received(5).await;
        assert_eq!(admin.remove(scene.endpoint.id).await.unwrap().ended, 4, "all except the one whose POST is open");
        let retry = stack.queue(Queue::WebhooksRetry).await;
        let before = retry.count().await;
        assert_eq!(hand(&stack.sender(), &messages[3..]).await, [0; 0]);
        assert_eq!(retry.count().await, before + 1, "a copy waits until the open attempt must have ended");
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &messages[3..]), removed);
    assert_eq!(scene.standing(open).await, (Status::Pending, 1));
    messages.push(stack.next_message(open).await);
    assert_eq!(hand(&sender, &messages).await, [0; 0]);
    scene.wait(7 * 24 * 60 * 60);
    stack.sweep().await;
    assert_eq!(hand(&sender, &messages).await, [0; 0]);

    for (id, attempts) in [(parked, 3), (delayed, 1), (held, 0), (queued, 0), (open, 1)] {
        let delivery = scene.delivery(id).await;
        assert_eq!(delivery.progress.failure, Some(Failure::EndpointRemoved));
        assert_eq!(scene.standing(id).await, (Status::Failed, attempts));
    }
    assert_eq!(stack.deliveries(scene.endpoint.id).await.len(), 5, "the deliveries can still be listed");
    assert_eq!((scene.receiver.so_far().len(), stack.take_notices().await), (5, vec![]));
    assert_eq!(stack.queue(Queue::WebhooksDead).await.count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_failure_of_a_removed_endpoint_makes_no_notice() {
    let scene = Scene::with(|number| if number <= 6 { Answer::Status(500) } else { Answer::Held(500) }).await;
    let (admin, sender, id) = (scene.stack.webhooks(), scene.stack.sender(), scene.before_last(1).await);
    let message = [scene.stack.next_message(id).await];
    let removed = async {
        scene.receiver.received(7).await;
        admin.remove(scene.endpoint.id).await.unwrap();
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &message), removed);
    assert_eq!(scene.standing(id).await, (Status::Failed, 7));
    assert_eq!(admin.list(scene.user).await.unwrap().readable, []);
    scene.wait(120);
    scene.stack.sweep().await;
    assert_eq!(scene.stack.take_notices().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_ends_a_delivery_that_the_removal_left_pending() {
    let scene = Scene::answering(204).await;
    let (id, unstored) = (scene.stored(1).await, scene.event(2).await);
    let message = [scene.stack.next_message(id).await, scene.stack.next_message(unstored).await];
    // The process that removes the endpoint dies before it ends the deliveries.
    let (admin, endpoint) = (scene.stack.webhooks(), &scene.endpoint);
    let removed = admin.store.remove_endpoint(scene.user, endpoint.id, endpoint.created_at).await;
    assert!(removed.unwrap());
    assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
    assert_eq!(scene.delivery(id).await.progress.failure, Some(Failure::EndpointRemoved));
    assert_eq!(scene.found(unstored).await, None, "a delivery that nobody had begun leaves no trace");
    assert_eq!(scene.receiver.so_far().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_removed_before_new_deliveries_are_held_gets_none() {
    for events in [1, 2] {
        let scene = Scene::answering(204).await;
        let admin = scene.stack.webhooks();
        admin.disable(scene.endpoint.id).await.unwrap();
        let mut ids = Vec::new();
        for number in 1..=events {
            ids.push(scene.event(number).await);
        }
        let messages = scene.stack.queue(Queue::WebhooksFirst).await.take(ids.len()).await;
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        // The first write hangs until the SDK repeats it.
        let mut is_first = true;
        proxy.plan(move |operation| {
            let hangs = operation == "TransactWriteItems" && std::mem::take(&mut is_first);
            if hangs { Fault::Hang } else { Fault::None }
        });
        let removed = async {
            proxy.wait_until_stuck().await;
            assert_eq!(admin.remove(scene.endpoint.id).await.unwrap().ended, 0);
        };
        tokio::join!(hand(&sender, &messages), removed);
        for id in ids {
            assert_eq!(scene.found(id).await, None, "{events} events");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drain_ends_the_deliveries_for_which_a_removal_has_no_time() {
    let scene = Scene::answering(204).await;
    let events: Vec<_> = (1..=130).map(|event| sale(event, scene.user)).collect();
    scene.stack.fan_out(&events).await;
    scene.stack.store_all_carried().await;
    let ids = (1..=130).map(|event| delivery_id(uuid(event).into(), scene.endpoint.id));
    let (store, now) = (scene.stack.webhooks().store, scene.stack.now());
    store.call_drain_by(scene.user, now, now).await.unwrap();
    assert!(store.remove_endpoint(scene.user, scene.endpoint.id, now).await.unwrap());
    let left = Cell::new(100);
    let removal = store.end_deliveries(scene.endpoint.id, now, || left.replace(left.get() - 1) > 0).await.unwrap();
    assert_eq!((removal.ended, removal.is_unfinished), (100, true));
    assert_eq!(store.drain(scene.user).await.unwrap().unwrap().removed, [scene.endpoint.id]);
    scene.stack.drain(scene.user).await;
    for id in ids {
        assert_eq!(scene.delivery(id).await.progress.failure, Some(Failure::EndpointRemoved));
    }
    // Somebody who read the endpoint before may let a delivery wait a little later. So the drain looks again.
    assert_eq!(store.drain(scene.user).await.unwrap().unwrap().removed, [scene.endpoint.id]);
    scene.wait(i64::from(GRACE_SECONDS) + 1);
    scene.stack.drain(scene.user).await;
    assert_eq!(store.drain(scene.user).await.unwrap().unwrap().removed, []);
    assert_eq!(scene.receiver.so_far().len(), 0);
}

/// Changes the scene's endpoint.
async fn updated(scene: &Scene, url: Option<&str>, events: Option<&[EventKind]>) -> Result<WebhookEndpoint, String> {
    let update = EndpointUpdate {
        url: url.map(str::to_owned),
        events: events.map(|events| events.iter().copied().collect::<BTreeSet<_>>()),
    };
    scene.stack.webhooks().update(scene.endpoint.id, update).await.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_url_has_to_prove_itself_and_gets_what_is_sent_from_then_on() {
    let scene = Scene::answering(204).await;
    let (first, second) = (scene.stored(1).await, Receiver::answering(204).await);
    let before = scene.stack.endpoint_of(scene.user).await;
    assert!(before.is_prompt);
    let after = updated(&scene, Some(&second.url), None).await.unwrap();
    let url = after.url.clone();
    assert_eq!(after, WebhookEndpoint { url, is_prompt: false, epoch: before.epoch + 1, ..before });
    assert_ne!(after.url, scene.endpoint.url);
    // The event came before the change. Its first attempt is made after it, by the drain.
    hand(&scene.stack.sender(), &[scene.stack.next_message(first).await]).await;
    scene.stack.drain(scene.user).await;
    assert_eq!((scene.posts(first).len(), second.so_far().len()), (0, 1));

    let proven = scene.stack.endpoint_of(scene.user).await;
    assert!(proven.is_prompt);
    assert_eq!(updated(&scene, Some(&proven.url), None).await.unwrap(), proven);
    assert!(!updated(&scene, Some(&scene.endpoint.url), None).await.unwrap().is_prompt);
}

/// Whoever gave the endpoint another URL has dealt with it. An attempt at the former one says nothing about the new one.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_at_the_former_url_warns_of_nothing_is_no_recovery_and_leaves_the_endpoint_on() {
    let second = Receiver::answering(204).await;
    for (failed, status, standing) in
        [(3_usize, 500, (Status::Pending, 4)), (4, 204, (Status::Delivered, 5)), (6, 500, (Status::Failed, 7))]
    {
        let answer = move |number: usize| if number <= failed { Answer::Status(500) } else { Answer::Held(status) };
        let scene = Scene::with(answer).await;
        let id = scene.failing(1, u32::try_from(failed).unwrap()).await;
        let (message, sender) = ([scene.stack.next_message(id).await], scene.stack.sender());
        scene.stack.take_all_notices().await;
        let changed = async {
            scene.receiver.received(failed + 1).await;
            updated(&scene, Some(&second.url), None).await.unwrap();
            scene.receiver.release_all();
        };
        let (handed, ()) = tokio::join!(hand(&sender, &message), changed);
        assert_eq!(handed, [0; 0], "{standing:?}");
        assert_eq!((scene.standing(id).await, scene.switch().await), (standing, Switch::On));
        assert_eq!(scene.stack.take_all_notices().await, [], "{standing:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_events_are_delivered_and_nothing_else_changes() {
    let scene = Scene::answering(204).await;
    scene.stack.webhooks().disable(scene.endpoint.id).await.unwrap();
    let before = scene.stack.endpoint_of(scene.user).await;
    let after = updated(&scene, None, Some(&[EventKind::WalletDeposit])).await.unwrap();
    assert_eq!(after, WebhookEndpoint { events: [EventKind::WalletDeposit].into(), ..before });
    scene.stack.webhooks().enable(scene.endpoint.id).await.unwrap();
    let ingest = scene.stack.ingest_at(&scene.stack.aws.endpoint_url);
    assert_eq!(hand(&ingest, &[feed_message(&sale(1, scene.user))]).await, [0; 0]);
    for lane in Queue::LANES {
        assert_eq!(scene.stack.queue(lane).await.count().await, 0);
    }
    updated(&scene, None, Some(&[EventKind::ListingSold])).await.unwrap();
    let id = scene.stored(2).await;
    assert_eq!(scene.standing(id).await, (Status::Pending, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_new_endpoint_may_not_have_is_refused_and_nothing_changes() {
    let scene = Scene::answering(204).await;
    let before = scene.stack.endpoint_of(scene.user).await;
    let refused = updated(&scene, Some("http://10.0.0.1/"), Some(&[EventKind::WalletDeposit])).await.unwrap_err();
    assert!(refused.starts_with("url: must "), "{refused}");
    assert_eq!(updated(&scene, None, Some(&[])).await.unwrap_err(), "event: at least one is needed");
    assert_eq!(updated(&scene, None, None).await.unwrap_err(), "url: a URL, events or both are needed");
    assert_eq!(scene.stack.endpoint_of(scene.user).await, before);
    let admin = scene.stack.webhooks();
    admin.remove(scene.endpoint.id).await.unwrap();
    let gone = updated(&scene, None, Some(&[EventKind::WalletDeposit])).await.unwrap_err();
    assert_eq!(gone, format!("no endpoint has the id {}", scene.endpoint.id));
}

/// Failures that were gathered at another URL, or before the endpoint was switched on again, count only for their own
/// delivery.
#[tokio::test(flavor = "multi_thread")]
async fn failures_from_before_a_new_start_never_switch_the_endpoint_off() {
    let second = Receiver::answering(503).await;
    for is_new_url in [true, false] {
        let scene = Scene::answering(503).await;
        let id = scene.before_last(1).await;
        scene.stack.take_all_notices().await;
        if is_new_url {
            updated(&scene, Some(&second.url), None).await.unwrap();
        } else {
            let admin = scene.stack.webhooks();
            admin.disable(scene.endpoint.id).await.unwrap();
            admin.enable(scene.endpoint.id).await.unwrap();
        }
        scene.stack.webhooks().store.mark_prompt(&scene.stack.endpoint_of(scene.user).await, true).await.unwrap();
        scene.attempt(id).await;
        assert_eq!((scene.standing(id).await, scene.switch().await), ((Status::Failed, 7), Switch::On));
        assert_eq!(scene.stack.take_all_notices().await, []);
        // A delivery that fails from then on does.
        scene.before_last(2).await;
        scene.attempt(delivery_id(uuid(2).into(), scene.endpoint.id)).await;
        assert_eq!(scene.switch().await, OFF_BY_FAILURES);
    }
}
