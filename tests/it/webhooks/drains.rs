//! Deliveries that wait in the table, the drain of their account, and the sweep that brings back what was lost.

use std::ops::Range;

use common::ids::DeliveryId;
use common::resources::{Queue, Table};
use futures_util::future::join_all;
use tests::{Answer, Fault, TestQueue, hand, patient, sale, stored_row};
use webhooks::delivery::{Failure, Status, Token};
use webhooks::drain::IN_FLIGHT;
use webhooks::promptness::SLOW_FOR_SECONDS;

use super::secrets::{keyring, put_keyring};
use super::{DAY_SECONDS, OVERDUE_SECONDS, Scene};

/// How long before it is due a drain is called, with a delay.
const AHEAD_SECONDS: i64 = 60;

impl Scene {
    /// Fans out events, and hands their messages to a sender, which lets them wait.
    async fn waiting(&self, events: Range<u128>) -> Vec<DeliveryId> {
        let sales: Vec<_> = events.clone().map(|event| sale(event, self.user)).collect();
        self.stack.fan_out(&sales).await;
        let retry = self.stack.queue(Queue::WebhooksRetry);
        for batch in sales.chunks(10) {
            self.handle(&retry.take(batch.len()).await).await;
        }
        events.map(|event| self.id(event)).collect()
    }

    /// Returns the queue of the calls of drains.
    fn slow(&self) -> TestQueue {
        self.stack.queue(Queue::WebhooksSlow)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_delivery_waits_where_its_owner_sees_it_and_later_ones_are_made_at_once() {
    let scene = Scene::answering(204).await.unproven().await;
    let waiting = scene.waiting(1..4).await;
    assert_eq!(scene.receiver.so_far().len(), 0);
    for id in &waiting {
        assert_eq!(scene.standing(*id).await, (Status::Pending, 0));
        assert!(scene.delivery(*id).await.progress.wake_at.is_some());
    }
    assert_eq!(scene.stack.deliveries(scene.endpoint.id).await.len(), 3);
    let slow = scene.slow();
    assert_eq!(slow.count().await, 1, "an account has one call, however many deliveries wait");
    scene.handle(&slow.take(1).await).await;
    scene.assert_delivered(&waiting).await;
    assert!(scene.stack.endpoint_of(scene.user).await.is_prompt);
    let next = scene.event(9).await;
    scene.attempt(next).await;
    assert_eq!((scene.standing(next).await, slow.count().await), ((Status::Delivered, 1), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_makes_ten_attempts_at_a_time_and_hands_on_the_rest() {
    let scene = Scene::with(|_| Answer::Held(204)).await.unproven().await;
    let waiting = scene.waiting(1..26).await;
    let slow = scene.slow();
    let (sender, call) = (scene.stack.sender_sending(patient()), slow.take(1).await);
    let time_is_up = async {
        scene.receiver.received(IN_FLIGHT).await;
        slow.wait_for_count(1).await;
        assert_eq!(scene.receiver.so_far().len(), IN_FLIGHT);
        scene.receiver.release_all();
    };
    let (handed, ()) = tokio::join!(hand(&sender, &call), time_is_up);
    assert_eq!(handed, [0; 0]);
    scene.handle(&slow.take(1).await).await;
    scene.assert_delivered(&waiting).await;
    assert_eq!(scene.receiver.so_far().len(), 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_what_begins_to_wait_while_it_is_under_way() {
    let held_first = |number| if number == 1 { Answer::Held(204) } else { Answer::Status(204) };
    let scene = Scene::with(held_first).await.unproven().await;
    scene.waiting(1..2).await;
    let late = async {
        scene.receiver.received(1).await;
        let late = scene.waiting(2..5).await;
        scene.receiver.received(4).await;
        scene.receiver.release_all();
        late
    };
    let ((), late) = tokio::join!(scene.stack.drain(scene.user), late);
    scene.assert_delivered(&late).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_find_their_receiver_busy_wait_for_the_drain() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    scene.stack.fan_out(&(1..11).map(|event| sale(event, scene.user)).collect::<Vec<_>>()).await;
    let batch = scene.stack.queue(Queue::WebhooksFirst).take(10).await;
    let busy = async {
        scene.slow().wait_for_count(1).await;
        assert_eq!(scene.receiver.so_far().len(), 4, "the others wait");
        let answered = async {
            scene.receiver.received(10).await;
            scene.receiver.release_all();
        };
        tokio::join!(scene.stack.drain(scene.user), answered);
    };
    tokio::join!(scene.handle(&batch), busy);
    scene.assert_delivered(&(1..11).map(|event| scene.id(event)).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_of_the_store_costs_no_second_post() {
    let all = &Scene::answering(204).await;
    let drained = (1..=6).map(|lost| async move {
        let scene = all.other(100 + lost).await;
        let id = scene.put(lost, |progress| progress.wake_at = Some(progress.due)).await;
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let mut updates = 0;
        proxy.plan(move |operation| {
            updates += u128::from(operation == "UpdateItem");
            if operation == "UpdateItem" && updates == lost { Fault::LoseAnswer } else { Fault::None }
        });
        let call = [scene.stack.drain_message(scene.user).await];
        assert_eq!(hand(&sender, &call).await, [0; 0], "{lost}");
        assert_eq!((scene.standing(id).await, scene.posts(id).len()), ((Status::Delivered, 1), 1), "{lost}");
    });
    join_all(drained).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_go_before_first_attempts() {
    let scene = Scene::answering(204).await.unproven().await;
    let retried = scene.failed(1, 1).await;
    scene.waiting(2..30).await;
    scene.attempt(retried).await;
    assert_eq!(scene.standing(retried).await, (Status::Pending, 1), "it waits as well");
    scene.stack.drain(scene.user).await;
    let posts = scene.receiver.so_far();
    // It is among the first that are sent. On a busy machine, a few that were sent later may arrive sooner.
    assert!(posts[..2 * IN_FLIGHT].iter().any(|post| post.id() == retried.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pending_delivery_has_a_time_to_live_and_one_that_waits_too_long_fails() {
    let scene = Scene::answering(204).await.unproven().await;
    let [id, other] = scene.waiting(1..3).await.try_into().unwrap();
    let ttl = async |id: DeliveryId| {
        let row = stored_row(&scene.stack, Table::Webhooks, [&format!("delivery#{id}"), "delivery"]).await;
        row.get("ttl").map(|value| value.as_n().unwrap().parse::<i64>().unwrap())
    };
    assert_eq!([ttl(id).await, ttl(other).await], [None; 2]);
    let created = scene.stack.now();
    // Their secret cannot be opened any more, and that does not matter.
    let without = keyring(&scene.stack).await.rotate(created).unwrap().without_older();
    put_keyring(&scene.stack, &without.reveal()).await;
    scene.wait(37 * DAY_SECONDS + 1);
    scene.stack.drain(scene.user).await;
    for id in [id, other] {
        let progress = scene.delivery(id).await.progress;
        assert_eq!((progress.status, progress.failure), (Status::Failed, Some(Failure::Expired)));
        assert_eq!(ttl(id).await, Some(created.seconds() + 37 * DAY_SECONDS));
    }
    assert_eq!(scene.receiver.so_far().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_whose_message_is_lost_is_made_after_five_minutes_and_two_sweeps_at_once_cause_one_run() {
    let scene = Scene::answering(204).await;
    let (id, slow) = (scene.stored(1).await, scene.slow());
    scene.wait(OVERDUE_SECONDS - AHEAD_SECONDS - 1);
    scene.stack.sweep().await;
    assert_eq!(slow.count().await, 0);
    scene.wait(1);
    scene.stack.sweep().await;
    assert_eq!((slow.count().await, slow.visible_count().await), (1, 0), "the message is delayed");
    scene.wait(AHEAD_SECONDS);
    tokio::join!(scene.stack.sweep(), scene.stack.sweep());
    let messages = slow.take(2).await;
    tokio::join!(scene.handle(&messages[..1]), scene.handle(&messages[1..]));
    assert_eq!((scene.standing(id).await, scene.receiver.so_far().len()), ((Status::Delivered, 1), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_retry_is_made_when_it_is_due_and_no_sooner() {
    let scene = Scene::with(|number| Answer::Status(if number == 1 { 500 } else { 204 })).await;
    let id = scene.failed(1, 2).await;
    scene.attempt(id).await;
    let due = scene.delivery(id).await.progress.due;
    // Half an hour, and a minute of slack.
    assert_eq!(due, scene.stack.now().plus_millis((30 + 1) * 60_000));
    while scene.stack.now().plus_millis(60_000) < due {
        scene.wait(60);
        scene.sweep_and_drain().await;
        assert_eq!(scene.standing(id).await, (Status::Pending, 3));
    }
    scene.wait(60);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_whose_call_is_lost_is_called_again() {
    let scene = Scene::answering(204).await;
    let (id, slow) = (scene.stored(1).await, scene.slow());
    scene.wait(OVERDUE_SECONDS);
    // Whoever wakes it dies before the message is sent.
    let (store, now) = (scene.stack.webhooks().store, scene.stack.now());
    assert!(store.wake_drain(scene.user, Token::random(), now, now).await.unwrap());
    scene.stack.sweep().await;
    // It waits for long in its queue. Its copies do not make it void.
    let early = slow.take(1).await;
    for _ in 0..3 {
        scene.wait(60);
        scene.stack.sweep().await;
    }
    scene.handle(&early).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    for late in slow.take(3).await {
        scene.handle(&[late]).await;
    }
    assert_eq!(scene.receiver.so_far().len(), 1);
}

/// An attempt that hangs for three seconds is enough. Its endpoint's next deliveries wait for the drain, whichever lane
/// they come from, until it has been prompt after five minutes.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_is_left_to_the_drain_until_it_responds_promptly() {
    let scene = Scene::with(|number| if number == 1 { Answer::Held(204) } else { Answer::Status(204) }).await;
    let (held, message) = scene.sent(1).await;
    let marked = async {
        scene.stack.endpoint_when(scene.user, |endpoint| !endpoint.is_prompt).await;
        scene.receiver.release_all();
    };
    tokio::join!(scene.handle(&message), marked);
    assert_eq!(scene.standing(held).await, (Status::Delivered, 1));

    let ids = [scene.event(2).await, scene.stored(3).await];
    for id in ids {
        scene.attempt(id).await;
        assert_eq!(scene.standing(id).await, (Status::Pending, 0));
    }
    assert_eq!(scene.receiver.so_far().len(), 1);
    scene.stack.drain(scene.user).await;
    scene.assert_delivered(&ids).await;
    assert!(!scene.stack.endpoint_of(scene.user).await.is_prompt, "it would hang again at once");
    scene.wait(SLOW_FOR_SECONDS);
    let last = scene.event(4).await;
    scene.attempt(last).await;
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(last).await, (Status::Delivered, 1));
    assert!(scene.stack.endpoint_of(scene.user).await.is_prompt);
}
