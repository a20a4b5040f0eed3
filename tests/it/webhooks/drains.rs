//! Deliveries that wait in the table, and the drain of their account.

use platform::resources::{Queue, Table};
use tests::{Answer, Fault, hand, hand_to_die, message, sale, stored_row};
use types::ids::DeliveryId;
use webhooks::delivery::{Failure, LEASE_SECONDS, Lane, Status};
use webhooks::delivery_id;
use webhooks::drain::IN_FLIGHT;
use webhooks::notice::EndpointNotice;

use super::Scene;

const DAY_SECONDS: i64 = 24 * 60 * 60;

impl Scene {
    /// Makes a scene whose endpoint has yet to show that it responds promptly.
    async fn unproven(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let scene = Self::with(answer).await;
        assert!(scene.stack.webhooks().store.mark_prompt(&scene.endpoint, false).await.unwrap());
        scene
    }

    /// Fans out events, and hands their messages to a sender, which lets them wait.
    async fn waiting(&self, events: std::ops::Range<u128>) -> Vec<DeliveryId> {
        let sales: Vec<_> = events.clone().map(|event| sale(event, self.user)).collect();
        self.stack.fan_out(&sales).await;
        let retry = self.stack.queue(Queue::WebhooksRetry).await;
        for batch in sales.chunks(10) {
            assert_eq!(hand(&self.stack.sender(), &retry.take(batch.len()).await).await, [0; 0]);
        }
        events.map(|event| delivery_id(tests::uuid(event).into(), self.endpoint.id)).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_delivery_waits_where_its_owner_sees_it_and_later_ones_are_made_at_once() {
    let scene = Scene::unproven(|_| Answer::Status(204)).await;
    let waiting = scene.waiting(1..4).await;
    assert_eq!(scene.receiver.so_far().len(), 0);
    for id in &waiting {
        assert_eq!(scene.standing(*id).await, (Status::Pending, 0));
        assert!(scene.delivery(*id).await.progress.wake_at.is_some());
    }
    assert_eq!(scene.stack.deliveries(scene.endpoint.id).await.len(), 3);
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    assert_eq!(slow.count().await, 1, "an account has one call, however many deliveries wait");
    assert_eq!(hand(&scene.stack.sender(), &slow.take(1).await).await, [0; 0]);
    for id in &waiting {
        assert_eq!(scene.standing(*id).await, (Status::Delivered, 1));
    }
    assert!(scene.stack.endpoint_of(scene.user).await.is_prompt);
    let next = scene.event(9).await;
    scene.attempt(next).await;
    assert_eq!((scene.standing(next).await, slow.count().await), ((Status::Delivered, 1), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_makes_ten_attempts_at_the_same_time_and_hands_on_what_it_has_no_time_for() {
    let scene = Scene::unproven(|_| Answer::Hang).await;
    let waiting = scene.waiting(1..26).await;
    scene.stack.drain(scene.user).await;
    // Two rounds of ten seconds. The rest is for the next run.
    assert_eq!(scene.receiver.so_far().len(), 2 * IN_FLIGHT);
    let mut failed = 0;
    for id in &waiting {
        failed += scene.delivery(*id).await.progress.failed_attempts;
    }
    assert_eq!(failed, 20);
    assert!(!scene.stack.endpoint_of(scene.user).await.is_prompt);
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    let calls = slow.take(slow.count().await.try_into().unwrap()).await;
    assert_eq!(hand(&scene.stack.sender(), &calls).await, [0; 0]);
    assert_eq!(scene.receiver.so_far().len(), 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_what_begins_to_wait_while_it_is_under_way() {
    let scene = Scene::unproven(|number| if number == 1 { Answer::Held(204) } else { Answer::Status(204) }).await;
    scene.waiting(1..2).await;
    let late = async {
        scene.receiver.received(1).await;
        let late = scene.waiting(2..5).await;
        scene.receiver.received(4).await;
        scene.receiver.release_all();
        late
    };
    let ((), late) = tokio::join!(scene.stack.drain(scene.user), late);
    for id in late {
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_find_their_receiver_busy_wait_for_the_drain() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    scene.stack.fan_out(&(1..11).map(|event| sale(event, scene.user)).collect::<Vec<_>>()).await;
    let batch = scene.stack.queue(Queue::WebhooksFirst).await.take(10).await;
    let (sender, slow) = (scene.stack.sender(), scene.stack.queue(Queue::WebhooksSlow).await);
    let busy = async {
        slow.wait_for_count(1).await;
        let drained = scene.receiver.so_far().len();
        assert_eq!(drained, 4, "the others wait");
        let run = scene.stack.drain(scene.user);
        let answered = async {
            scene.receiver.received(10).await;
            scene.receiver.release_all();
        };
        tokio::join!(run, answered);
    };
    let (handed, ()) = tokio::join!(hand(&sender, &batch), busy);
    assert_eq!(handed, [0; 0]);
    for event in 1..11 {
        let id = delivery_id(tests::uuid(event).into(), scene.endpoint.id);
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_dies_at_any_step_loses_and_repeats_nothing_that_was_recorded() {
    let (mut call, mut died) = (0, true);
    while died {
        call += 1;
        let scene = Scene::unproven(|_| Answer::Status(204)).await;
        let [id] = scene.waiting(1..2).await.try_into().unwrap();
        let (mortal, proxy) = scene.stack.sender_behind_proxy().await;
        let first = [scene.stack.drain_message(scene.user).await];
        died = hand_to_die(&mortal, &proxy, &first, call, Fault::HangAfter).await;
        // Its message comes again, and a sweep calls the drain once the leases have ended.
        assert_eq!(hand(&scene.stack.sender(), &first).await, [0; 0], "{call}");
        for _ in 0..2 {
            scene.wait(LEASE_SECONDS + 1);
            scene.sweep_and_drain().await;
        }
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1), "{call}");
        assert!((1..=2).contains(&scene.receiver.so_far().len()), "{call}");
    }
    assert!(call > 7, "begin, endpoints, index, keyring, claim, record, rest, but only {call} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_of_the_store_costs_no_second_post() {
    for lost in 1..=6 {
        let scene = Scene::unproven(|_| Answer::Status(204)).await;
        let [id] = scene.waiting(1..2).await.try_into().unwrap();
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let mut updates = 0;
        proxy.plan(move |operation| {
            updates += usize::from(operation == "UpdateItem");
            if operation == "UpdateItem" && updates == lost { Fault::LoseAnswer } else { Fault::None }
        });
        assert_eq!(hand(&sender, &[scene.stack.drain_message(scene.user).await]).await, [0; 0], "{lost}");
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1), "{lost}");
        assert_eq!(scene.receiver.so_far().len(), 1, "{lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_and_a_drain_make_one_post_of_a_delivery() {
    let scene = Scene::unproven(|_| Answer::Held(204)).await;
    let [id] = scene.waiting(1..2).await.try_into().unwrap();
    let attempt = [scene.stack.next_message(id).await];
    scene.stack.prove(&scene.endpoint).await;
    let (sender, other) = (scene.stack.sender(), scene.stack.sender());
    let call = [scene.stack.drain_message(scene.user).await];
    let handed = async {
        scene.receiver.received(1).await;
        assert_eq!(hand(&sender, &attempt).await, [0; 0]);
        scene.receiver.release_all();
    };
    tokio::join!(hand(&other, &call), handed);
    assert_eq!((scene.standing(id).await, scene.receiver.so_far().len()), ((Status::Delivered, 1), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_go_before_first_attempts() {
    let scene = Scene::unproven(|number| Answer::Status(if number == 1 { 500 } else { 204 })).await;
    let [retried] = scene.waiting(1..2).await.try_into().unwrap();
    scene.stack.drain(scene.user).await;
    scene.stack.webhooks().store.mark_prompt(&scene.endpoint, false).await.unwrap();
    scene.waiting(2..30).await;
    scene.wait(30);
    let message = [scene.stack.next_message(retried).await];
    assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
    assert_eq!(scene.standing(retried).await, (Status::Pending, 1), "it waits as well");
    scene.stack.drain(scene.user).await;
    let posts = scene.receiver.so_far();
    assert!(posts[1..=IN_FLIGHT].iter().any(|post| post.id() == retried.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_an_endpoint_that_is_switched_off_is_held() {
    let scene = Scene::unproven(|_| Answer::Status(204)).await;
    let waiting = scene.waiting(1..4).await;
    scene.stack.webhooks().disable(scene.endpoint.id).await.unwrap();
    scene.stack.drain(scene.user).await;
    for id in waiting {
        assert_eq!(scene.standing(id).await, (Status::Held, 0));
    }
    assert_eq!(scene.receiver.so_far().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pending_delivery_has_a_time_to_live_and_one_that_waits_too_long_fails() {
    let scene = Scene::unproven(|_| Answer::Status(204)).await;
    let [id, other] = scene.waiting(1..3).await.try_into().unwrap();
    let ttl = async |id: DeliveryId| {
        let row = stored_row(&scene.stack, Table::Webhooks, [&format!("delivery#{id}"), "delivery"]).await;
        row.get("ttl").map(|value| value.as_n().unwrap().parse::<i64>().unwrap())
    };
    assert_eq!([ttl(id).await, ttl(other).await], [None; 2]);
    let created = scene.stack.now();
    scene.wait(37 * 24 * 60 * 60 + 1);
    scene.stack.drain(scene.user).await;
    for id in [id, other] {
        let progress = scene.delivery(id).await.progress;
        assert_eq!((progress.status, progress.failure), (Status::Failed, Some(Failure::Expired)));
        assert_eq!(ttl(id).await, Some(created.seconds() + 37 * 24 * 60 * 60));
    }
    assert_eq!(scene.receiver.so_far().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_knows_is_void() {
    let scene = Scene::answering(204).await;
    let body = format!(r#"{{"type":"drain","account_id":"{}","token":"{}"}}"#, scene.user, tests::uuid(1));
    assert_eq!(hand(&scene.stack.sender(), &[message(Lane::Slow, &body)]).await, [0; 0]);
    assert_eq!(scene.stack.webhooks().store.drain(scene.user).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_deliveries_of_a_full_endpoint_are_held_and_its_owner_is_told() {
    let scene = Scene::unproven(|_| Answer::Hang).await;
    let waiting = scene.waiting(1..31).await;
    scene.wait(DAY_SECONDS);
    // A run measures at the beginning of every fifth minute.
    scene.wait(300 - scene.stack.now().seconds() % 300);
    scene.stack.drain(scene.user).await;
    let notices = scene.stack.take_all_notices().await;
    let [EndpointNotice::Full(notice)] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((notice.about.endpoint_id, notice.full_at), (scene.endpoint.id, scene.stack.now()));
    let full = scene.stack.endpoint_of(scene.user).await;
    assert_eq!((full.full_since, full.full_told_at), (Some(scene.stack.now()), Some(scene.stack.now())));
    let held = scene.event(101).await;
    scene.attempt(held).await;
    assert_eq!(scene.standing(held).await, (Status::Held, 0));
    let mut untouched = 0;
    for id in waiting {
        untouched += usize::from(scene.standing(id).await == (Status::Pending, 0));
    }
    assert_eq!(untouched, 10, "what waits goes on waiting");
}
