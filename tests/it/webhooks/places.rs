//! Attempts that need a place in their account's share.

use std::sync::Arc;

use admin::webhooks::NewEndpoint;
use aws_lambda_events::sqs::SqsMessage;
use platform::resources::Queue;
use tests::{Answer, Fault, Receiver, Stack, hand, hand_to_die, message, sale, uuid};
use types::event::EventKind;
use types::ids::{DeliveryId, UserId};
use webhooks::delivery::{Carried, Delivery, LEASE_SECONDS, Lane, Status, Token};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::share::{PLACES, Place, Share};
use webhooks::{QueueMessage, delivery_id};

use super::Scene;

/// An account with endpoints that have proved nothing yet, and one event that went to all of them.
struct Crowd {
    stack: Stack,
    receiver: Receiver,
    user: UserId,
    deliveries: Vec<DeliveryId>,
}

impl Crowd {
    async fn new(endpoints: usize, answer: fn(usize) -> Answer) -> Self {
        let (stack, receiver, user) =
            (Stack::new().await, Receiver::start(move |n, _| answer(n)).await, uuid(5).into());
        let mut ids = Vec::new();
        for number in 0..endpoints {
            let url = format!("{}/{number}", receiver.url);
            let new = NewEndpoint { user_id: user, url, events: [EventKind::ListingSold].into() };
            ids.push(stack.webhooks().add(new).await.unwrap().0.id);
        }
        stack.fan_out(&[sale(1, user)]).await;
        let deliveries = ids.iter().map(|id| delivery_id(uuid(1).into(), *id)).collect();
        Self { stack, receiver, user, deliveries }
    }

    async fn found(&self, id: DeliveryId) -> Option<Delivery> {
        self.stack.webhooks().store.delivery(id).await.unwrap()
    }

    async fn share(&self) -> Share {
        share(&self.stack, self.user).await
    }

    /// Returns the messages of all deliveries as the slow lane delivers them, where they are stored.
    async fn in_slow_lane(&self) -> Vec<SqsMessage> {
        self.stack.store_all_carried().await;
        let mut messages = Vec::new();
        for id in &self.deliveries {
            messages.push(self.stack.slow_message(*id).await);
        }
        messages
    }
}

async fn share(stack: &Stack, user: UserId) -> Share {
    let mut accounts = stack.webhooks().store.accounts(&[user].into()).await.unwrap();
    accounts.remove(&user).unwrap().share
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_delivery_goes_through_the_slow_lane_and_later_ones_do_not() {
    let crowd = Crowd::new(1, |_| Answer::Status(204)).await;
    let [first, slow] = [Queue::WebhooksFirst, Queue::WebhooksSlow].map(|queue| crowd.stack.queue(queue));
    let (first, slow, sender) = (first.await, slow.await, crowd.stack.sender());
    assert_eq!(first.count().await, 0);
    assert_eq!(hand(&sender, &slow.take(1).await).await, [0; 0]);
    assert_eq!(crowd.receiver.so_far().len(), 1);
    crowd.stack.fan_out(&[sale(2, crowd.user)]).await;
    assert_eq!(hand(&sender, &first.take(1).await).await, [0; 0]);
    assert_eq!((crowd.receiver.so_far().len(), slow.count().await), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_endpoints_of_an_account_take_turns_within_a_batch_and_are_known_to_be_prompt_afterwards() {
    let crowd = Crowd::new(10, |_| Answer::Status(500)).await;
    let mut batch = crowd.in_slow_lane().await;
    // On a busy machine some have no turn within a second. They leave, and come back.
    while !batch.is_empty() {
        assert_eq!(hand(&crowd.stack.sender(), &batch).await, [0; 0]);
        batch.clear();
        for id in &crowd.deliveries {
            if crowd.found(*id).await.unwrap().progress.failed_attempts == 0 {
                batch.push(crowd.stack.slow_message(*id).await);
            }
        }
    }
    assert_eq!(crowd.receiver.so_far().len(), 10);
    for id in &crowd.deliveries {
        let progress = crowd.found(*id).await.unwrap().progress;
        assert_eq!((progress.failed_attempts, progress.turns), (1, 0));
    }
    let endpoints = crowd.stack.webhooks().list(crowd.user).await.unwrap().readable;
    assert!(endpoints.iter().all(|endpoint| endpoint.is_prompt), "a failure may be prompt");
    assert_eq!(crowd.share().await, Share::default(), "every place was left");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_three_places_across_all_senders_and_what_finds_none_comes_back_later() {
    let crowd = Crowd::new(4, |_| Answer::Held(204)).await;
    let messages = crowd.in_slow_lane().await;
    let slow = crowd.stack.queue(Queue::WebhooksSlow).await;
    let senders: Vec<_> = messages.iter().map(|_| crowd.stack.sender()).collect();
    let crowded = async {
        crowd.receiver.received(PLACES).await;
        assert_eq!(hand(&senders[3], &messages[3..]).await, [0; 0]);
        assert_eq!((slow.count().await, slow.visible_count().await), (1, 0), "its message is delayed");
        assert_eq!(crowd.share().await.places.iter().flatten().count(), PLACES);
        crowd.receiver.release_all();
    };
    tokio::join!(
        hand(&senders[0], &messages[..1]),
        hand(&senders[1], &messages[1..2]),
        hand(&senders[2], &messages[2..3]),
        crowded
    );
    assert_eq!(crowd.receiver.so_far().len(), PLACES);
    let mut waiting = Vec::new();
    for id in &crowd.deliveries {
        waiting.extend(crowd.found(*id).await.filter(|delivery| delivery.progress.status == Status::Pending));
    }
    let [waiting] = &waiting[..] else { panic!("{waiting:?}") };
    assert_eq!((waiting.progress.turns, waiting.progress.claims), (1, 0));
    assert!(waiting.progress.wake_at.is_some(), "a sweep finds it if its message is lost");

    // The message of before is void, and the new one calls for the attempt.
    assert_eq!(hand(&senders[3], &messages[3..]).await, [0; 0]);
    assert_eq!(crowd.receiver.so_far().len(), PLACES);
    let next = crowd.stack.slow_message(waiting.id).await;
    assert_eq!(hand(&senders[3], &[next]).await, [0; 0]);
    assert_eq!(crowd.found(waiting.id).await.unwrap().progress.status, Status::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_whose_response_does_not_end_is_not_known_to_be_prompt() {
    let crowd = Crowd::new(1, |_| Answer::Endless(200)).await;
    let message = crowd.in_slow_lane().await;
    assert_eq!(hand(&crowd.stack.sender(), &message).await, [0; 0]);
    assert_eq!(crowd.found(crowd.deliveries[0]).await.unwrap().progress.status, Status::Delivered);
    let endpoint = crowd.stack.endpoint_of(crowd.user).await;
    // The attempt ends a second after the response's head, and the endpoint is marked a second after its beginning.
    assert_eq!(endpoint.is_prompt, endpoint.slow_until.is_none());
    assert_eq!(crowd.share().await, Share::default(), "the place was left");
}

/// Makes an endpoint slow, with one place taken by an attempt that is under way.
async fn occupy(scene: &Scene) -> WebhookEndpoint {
    let (store, now) = (scene.stack.webhooks().store, scene.stack.now());
    let endpoint = scene.stack.endpoint_of(scene.user).await;
    store.mark_slow(scene.user, endpoint.id, now.plus_millis(60_000)).await.unwrap();
    let place = Place::new(endpoint.id, Token::random(), now);
    assert!(store.take_place(scene.user, 0, place, false, now).await.unwrap());
    endpoint
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_waits_for_minutes_is_carried_and_one_that_waits_longer_is_stored() {
    let scene = Scene::answering(204).await;
    let id = scene.event(1).await;
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    let mut carried = scene.stack.carried(id).await.as_ref().clone();
    for turns in 1..=6 {
        occupy(&scene).await;
        let call = QueueMessage::First(Arc::new(carried.clone()));
        let message = message(Lane::Slow, &serde_json::to_string(&call).unwrap());
        assert_eq!(hand(&scene.stack.sender(), &[message]).await, [0; 0]);
        let found = scene.found(id).await;
        assert_eq!(slow.count().await, if found.is_some() { turns - 1 } else { turns });
        if let Some(found) = found {
            assert!(turns > 4, "{turns}");
            assert_eq!(u64::from(found.progress.turns), turns);
            assert!(
                found.progress.wake_at.is_some_and(|wake_at| wake_at < found.progress.due),
                "a sweep brings it back"
            );
            return;
        }
        carried = carried.after_leaving();
        scene.wait(LEASE_SECONDS + 1);
    }
    panic!("it was never stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_attempt_without_a_place_waits_longer_each_time_and_then_in_the_table() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    let (mut delays, mut messages) = (Vec::new(), 0);
    for turn in 1..=11 {
        occupy(&scene).await;
        let begun = scene.stack.now();
        assert_eq!(hand(&scene.stack.sender(), &[scene.stack.slow_message(id).await]).await, [0; 0]);
        let progress = scene.delivery(id).await.progress;
        assert_eq!((progress.status, progress.turns, progress.claims), (Status::Pending, turn, 0));
        delays.push((progress.due.millis() - begun.millis()) / 1_000);
        let is_parked = progress.wake_at.unwrap() < progress.due;
        messages += u64::from(!is_parked);
        assert_eq!(slow.count().await, messages, "turn {turn}");
        scene.wait(LEASE_SECONDS + 1);
    }
    for (delay, shortest) in delays.iter().zip([30, 60, 120, 240]) {
        assert!((shortest..=2 * shortest).contains(delay), "{delays:?}");
    }
    assert!(delays.iter().all(|delay| *delay <= 2 * 60 * 60 + 60), "{delays:?}");
    assert!(messages < 11, "the later ones are parked");
    assert_eq!(scene.receiver.so_far().len(), 0);
    assert_eq!(hand(&scene.stack.sender(), &[scene.stack.slow_message(id).await]).await, [0; 0]);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn first_attempts_leave_the_places_to_a_retry_that_found_none() {
    let scene = Scene::with(|number| Answer::Status(if number == 1 { 500 } else { 204 })).await;
    let id = scene.event(1).await;
    scene.attempt(id).await;
    occupy(&scene).await;
    // The retry finds no place.
    assert_eq!(hand(&scene.stack.sender(), &[scene.stack.slow_message(id).await]).await, [0; 0]);
    assert!(share(&scene.stack, scene.user).await.is_reserved(scene.stack.now()));
    let waits = scene.delivery(id).await.progress;
    assert!((10..=20).contains(&((waits.due.millis() - scene.stack.now().millis()) / 1_000)), "{waits:?}");

    // The place is free again, and the endpoint no longer slow, but a first attempt does not take it.
    let account =
        scene.stack.webhooks().store.accounts(&[scene.user].into()).await.unwrap().remove(&scene.user).unwrap();
    let place = account.share.places[0].unwrap();
    scene.stack.webhooks().store.leave_place(scene.user, 0, place).await.unwrap();
    scene.wait(60);
    scene
        .stack
        .webhooks()
        .store
        .reserve_places(scene.user, scene.endpoint.id, scene.stack.now().plus_millis(60_000))
        .await
        .unwrap();
    let other = scene.stored(2).await;
    assert_eq!(hand(&scene.stack.sender(), &[scene.stack.slow_message(other).await]).await, [0; 0]);
    assert_eq!(scene.standing(other).await, (Status::Pending, 0));
    assert_eq!(hand(&scene.stack.sender(), &[scene.stack.slow_message(id).await]).await, [0; 0]);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_place_of_a_sender_that_died_is_free_again_after_its_time() {
    let crowd = Crowd::new(1, |_| Answer::Status(204)).await;
    let message = crowd.in_slow_lane().await;
    let (mortal, proxy) = crowd.stack.sender_behind_proxy().await;
    // The accounts, the keyring or the place, and the claim come before the record of the attempt.
    assert!(hand_to_die(&mortal, &proxy, &message, 5, Fault::Hang).await);
    let share = crowd.share().await;
    let [place] = share.places.iter().flatten().collect::<Vec<_>>()[..] else { panic!("{share:?}") };
    assert_eq!(place.until, crowd.stack.now().plus_millis(LEASE_SECONDS * 1_000));
    crowd.stack.clock.advance(std::time::Duration::from_secs(LEASE_SECONDS.unsigned_abs() + 1));
    assert_eq!(hand(&crowd.stack.sender(), &[tests::again(&message[0])]).await, [0; 0]);
    assert_eq!(crowd.found(crowd.deliveries[0]).await.unwrap().progress.status, Status::Delivered);
    assert_eq!(crowd.share().await, Share::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_response_of_the_store_costs_no_place_and_no_second_post() {
    // The place, the claim, the record of the attempt, and the end of the place.
    for lost in 1..=4 {
        let crowd = Crowd::new(1, |_| Answer::Status(204)).await;
        let message = crowd.in_slow_lane().await;
        let (sender, proxy) = crowd.stack.sender_behind_proxy().await;
        let mut updates = 0;
        proxy.plan(move |operation| {
            updates += usize::from(operation == "UpdateItem");
            if operation == "UpdateItem" && updates == lost { Fault::LoseAnswer } else { Fault::None }
        });
        assert_eq!(hand(&sender, &message).await, [0; 0], "{lost}");
        assert_eq!(crowd.found(crowd.deliveries[0]).await.unwrap().progress.status, Status::Delivered, "{lost}");
        assert_eq!((crowd.receiver.so_far().len(), crowd.share().await), (1, Share::default()), "{lost}");
        assert!(crowd.stack.endpoint_of(crowd.user).await.is_prompt, "{lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_gives_an_endpoint_one_place_and_lets_only_its_holder_leave_it() {
    let scene = Scene::answering(204).await;
    let (store, now) = (scene.stack.webhooks().store, scene.stack.now());
    let place = || Place::new(scene.endpoint.id, Token::random(), now);
    let (holder, other) = (place(), place());
    assert!(store.take_place(scene.user, 0, holder, false, now).await.unwrap());
    for number in 0..PLACES {
        assert!(!store.take_place(scene.user, number, other, false, now).await.unwrap(), "{number}");
    }
    store.leave_place(scene.user, 0, other).await.unwrap();
    store.leave_place_promptly(scene.user, 0, other).await.unwrap();
    assert_eq!(share(&scene.stack, scene.user).await.places, [Some(holder), None, None]);
    store.leave_place(scene.user, 0, holder).await.unwrap();
    assert_eq!(share(&scene.stack, scene.user).await, Share::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_leaves_gives_a_wake_up_to_a_delivery_whose_sender_died() {
    let scene = Scene::answering(204).await;
    let id = scene.event(1).await;
    let carried = scene.stack.carried(id).await.as_ref().clone();
    let copy = |lane, carried: &Carried| {
        message(lane, &serde_json::to_string(&QueueMessage::First(Arc::new(carried.clone()))).unwrap())
    };
    let (mortal, proxy) = scene.stack.sender_behind_proxy().await;
    // The accounts, the keyring and the claim come before the record of the attempt.
    assert!(hand_to_die(&mortal, &proxy, &[copy(Lane::First, &carried)], 4, Fault::Hang).await);
    let claimed = scene.delivery(id).await.progress;
    assert_eq!((claimed.claims, claimed.wake_at), (1, None));

    occupy(&scene).await;
    // After so many turns the table brings a delivery back, and no message.
    let left_often = (0..12).fold(carried, |carried, _| carried.after_leaving());
    assert_eq!(hand(&scene.stack.sender(), &[copy(Lane::Slow, &left_often)]).await, [0; 0]);
    let progress = scene.delivery(id).await.progress;
    assert_eq!(progress.claims, 1);
    assert!(progress.wake_at.is_some(), "a sweep finds it");
}
