//! An endpoint is removed, or gets another URL, other events or another URL's rules, while its deliveries are under way.

use std::cell::Cell;
use std::collections::BTreeSet;

use admin::webhooks::EndpointUpdate;
use common::event::EventKind;
use common::ids::DeliveryId;
use common::resources::Queue;
use tests::{Answer, Receiver, delivery, hand};
use webhooks::delivery::{Failure, Status};
use webhooks::drain::REMOVED_FOR_SECONDS;
use webhooks::endpoint::{Switch, WebhookEndpoint};

use super::{BEFORE_LAST, DAY_SECONDS, EXHAUSTED, OFF_BY_FAILURES, Scene};

impl Scene {
    /// Gives the endpoint another URL, other events or both.
    pub(super) async fn updated(&self, url: Option<&str>, events: Option<&[EventKind]>) -> WebhookEndpoint {
        let events = events.map(|events| events.iter().copied().collect::<BTreeSet<_>>());
        let update = EndpointUpdate { url: url.map(str::to_owned), events };
        self.stack.webhooks().update(self.endpoint.id, update).await.unwrap()
    }

    async fn failure(&self, id: DeliveryId) -> Option<Failure> {
        self.delivery(id).await.progress.failure
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_delivery_of_a_removed_endpoint_ends_and_nothing_more_is_sent() {
    let scene = Scene::with(|_| Answer::Held(500)).await;
    let (stack, admin) = (&scene.stack, scene.stack.webhooks());
    let (parked, delayed) = (scene.failed(1, 3).await, scene.failed(2, 1).await);
    scene.disable().await;
    let held = scene.event(3).await;
    scene.attempt(held).await;
    scene.enable().await;
    let (queued, open) = (scene.stored(4).await, scene.event(5).await);
    let mut messages = Vec::new();
    for id in [parked, delayed, queued, open] {
        messages.extend(scene.message(id).await);
    }
    let (unstored, message) = scene.sent(6).await;
    let removed = async {
        scene.receiver.received(1).await;
        assert_eq!(admin.remove(scene.endpoint.id).await.unwrap().ended, 4, "all except the one whose POST is open");
        let retry = stack.queue(Queue::WebhooksRetry);
        let before = retry.count().await;
        scene.handle(&messages[3..]).await;
        assert_eq!(retry.count().await, before + 1, "a copy waits until the open attempt must have ended");
        scene.receiver.release_all();
    };
    tokio::join!(scene.handle(&messages[3..]), removed);
    assert_eq!(scene.standing(open).await, (Status::Pending, 1));
    messages.extend([scene.message(open).await, message].concat());
    scene.handle(&messages).await;
    scene.wait(7 * DAY_SECONDS);
    stack.sweep().await;
    scene.handle(&messages).await;

    for (id, attempts) in [(parked, 3), (delayed, 1), (held, 0), (queued, 0), (open, 1)] {
        assert_eq!(scene.failure(id).await, Some(Failure::EndpointRemoved));
        assert_eq!(scene.standing(id).await, (Status::Failed, attempts));
    }
    assert_eq!(stack.deliveries(scene.endpoint.id).await.len(), 5, "the deliveries can still be listed");
    assert_eq!(scene.found(unstored).await, None, "a delivery that nobody had begun leaves no trace");
    assert_eq!((scene.receiver.so_far().len(), stack.take_notices().await), (1, vec![]));
    assert_eq!(stack.queue(Queue::WebhooksDead).count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_removed_before_new_deliveries_are_held_gets_none() {
    let scene = Scene::answering(204).await;
    for (user, events) in [(10, 1), (20, 2)] {
        let scene = scene.other(user).await;
        scene.disable().await;
        let mut batch = Vec::new();
        for event in user..user + events {
            batch.extend(scene.sent(event).await.1);
        }
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let removed = proxy.while_held("TransactWriteItems", 1, async {
            assert_eq!(scene.stack.webhooks().remove(scene.endpoint.id).await.unwrap().ended, 0);
        });
        tokio::join!(hand(&sender, &batch), removed);
        for event in user..user + events {
            assert_eq!(scene.found(scene.id(event)).await, None, "{events} events");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drain_ends_the_deliveries_for_which_a_removal_has_no_time() {
    let scene = Scene::answering(204).await;
    let (store, now) = (scene.stack.webhooks().store, scene.stack.now());
    let all: Vec<_> = (1..=130).map(|event| delivery(event, &scene.endpoint, Status::Pending, now)).collect();
    scene.stack.put_deliveries(&all).await;
    store.wake_drain_by(scene.user, now, now).await.unwrap();
    assert!(store.remove_endpoint(scene.user, scene.endpoint.id, now).await.unwrap());
    let left = Cell::new(100);
    let removal = store.end_deliveries(scene.endpoint.id, now, || left.replace(left.get() - 1) > 0).await.unwrap();
    assert_eq!((removal.ended, removal.is_unfinished), (100, true));
    assert_eq!(store.drain(scene.user).await.unwrap().unwrap().removed, [scene.endpoint.id]);
    scene.stack.drain(scene.user).await;
    for delivery in all {
        assert_eq!(scene.failure(delivery.id).await, Some(Failure::EndpointRemoved));
    }
    // Somebody who read the endpoint before may let a delivery wait a little later. So the drain looks again.
    assert_eq!(store.drain(scene.user).await.unwrap().unwrap().removed, [scene.endpoint.id]);
    scene.wait(i64::from(REMOVED_FOR_SECONDS) + 1);
    scene.stack.drain(scene.user).await;
    assert_eq!(store.drain(scene.user).await.unwrap().unwrap().removed, []);
    assert_eq!(scene.receiver.so_far().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_url_has_to_prove_itself_and_gets_what_is_sent_from_then_on() {
    let scene = Scene::answering(204).await;
    let (first, second) = (scene.stored(1).await, Receiver::answering(204).await);
    let before = scene.stack.endpoint_of(scene.user).await;
    assert!(before.is_prompt);
    let after = scene.updated(Some(&second.url), None).await;
    let url = after.url.clone();
    let host_changed_at = Some(scene.stack.now());
    let expected = WebhookEndpoint { url, is_prompt: false, host_changed_at, epoch: before.epoch + 1, ..before };
    assert_eq!(after, expected);
    assert_ne!(after.url, scene.endpoint.url);
    // The event came before the change. Its first attempt is made after it, by the drain.
    scene.attempt(first).await;
    scene.stack.drain(scene.user).await;
    assert_eq!((scene.posts(first).len(), second.so_far().len()), (0, 1));

    scene.disable().await;
    let proven = scene.stack.endpoint_of(scene.user).await;
    assert!(proven.is_prompt);
    assert_eq!(scene.updated(Some(&proven.url), None).await, proven);
    let events = [EventKind::WalletDeposit];
    let expected = WebhookEndpoint { events: events.into(), ..proven };
    assert_eq!(scene.updated(None, Some(&events)).await, expected);
    assert!(!scene.updated(Some(&scene.endpoint.url), None).await.is_prompt);
}

/// Whoever changes an endpoint while an attempt is under way has dealt with it. The attempt is recorded, and that is all.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_from_before_its_endpoint_was_changed_tells_its_owner_nothing_and_leaves_it_on() {
    let (scene, second) = (Scene::answering(500).await, Receiver::answering(204).await);
    let mut user = 100;
    for change in ["switched off", "switched off and on", "removed", "moved"] {
        // Which would warn, show a recovery, or switch the endpoint off.
        for (failed, status, standing) in
            [(3, 500, (Status::Pending, 4)), (4, 204, (Status::Delivered, 5)), (BEFORE_LAST, 500, EXHAUSTED)]
        {
            user += 1;
            let of_warning = usize::from(failed == 4);
            let answer = move |number| if number <= of_warning { Answer::Status(500) } else { Answer::Held(status) };
            let scene = scene.beside(user, answer).await;
            let id = if failed == 4 { scene.warned(user).await } else { scene.failed(user, failed).await };
            let message = scene.message(id).await;
            let changed = async {
                scene.receiver.received(of_warning + 1).await;
                match change {
                    "removed" => drop(scene.stack.webhooks().remove(scene.endpoint.id).await.unwrap()),
                    "moved" => drop(scene.updated(Some(&second.url), None).await),
                    _ => scene.disable().await,
                }
                if change == "switched off and on" {
                    scene.enable().await;
                }
                scene.receiver.release_all();
            };
            tokio::join!(scene.handle(&message), changed);
            assert_eq!(scene.standing(id).await, standing, "{change}");
            if change != "removed" {
                assert_eq!(scene.switch().await == Switch::On, change != "switched off", "{change} {standing:?}");
            }
        }
    }
    scene.wait(2 * 60);
    scene.stack.sweep().await;
    assert_eq!(scene.stack.take_all_notices().await, []);
}

/// Failures that were gathered at another URL, or before the endpoint was switched on again, count only for their own
/// delivery.
#[tokio::test(flavor = "multi_thread")]
async fn failures_from_before_a_new_start_never_switch_the_endpoint_off() {
    let (scene, second) = (Scene::answering(503).await, Receiver::answering(503).await);
    for (user, is_new_url) in [(10, true), (20, false)] {
        let scene = scene.other(user).await;
        let (to_warn, last) = (scene.failed(user, 3).await, scene.failed(user + 1, BEFORE_LAST).await);
        if is_new_url {
            scene.updated(Some(&second.url), None).await;
        } else {
            scene.disable().await;
            scene.enable().await;
        }
        scene.stack.prove(&scene.stack.endpoint_of(scene.user).await).await;
        for (id, standing) in [(to_warn, (Status::Pending, 4)), (last, EXHAUSTED)] {
            scene.attempt(id).await;
            assert_eq!((scene.standing(id).await, scene.switch().await), (standing, Switch::On));
        }
        assert_eq!(scene.stack.take_all_notices().await, []);
        // A delivery that fails from then on does.
        scene.attempt(scene.before_last(user + 2).await).await;
        assert_eq!((scene.switch().await, scene.stack.take_all_notices().await.len()), (OFF_BY_FAILURES, 2));
    }
}
