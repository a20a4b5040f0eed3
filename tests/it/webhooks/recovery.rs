//! An endpoint's deliveries are sent again in bulk, after its receiver was away.

use std::collections::BTreeSet;

use admin::webhooks::{Recoverable, Recovery, RecoveryProgress, Selection, WebhookAdmin, WebhookAdminError};
use common::aws::{Environment, Patience};
use common::ids::DeliveryId;
use common::resources::Queue;
use local::environment::Variables;
use tests::{Fault, Proxy, delivery};
use tokio::sync::Notify;
use webhooks::delivery::{Delivery, MAX_ROUNDS, Progress, Status};
use webhooks::store::WebhookStore;

use super::unreadable::UNKNOWN;
use super::{DAY_SECONDS, Scene};

fn everything() -> Selection {
    Selection { statuses: Recoverable::ALL.into(), since: None, until: None }
}

impl Scene {
    /// Stores deliveries with these statuses, each created a minute after the one before. Returns them, oldest first.
    async fn store(&self, statuses: impl IntoIterator<Item = Status>) -> Vec<Delivery> {
        let mut all = Vec::new();
        for (event, status) in (1..).zip(statuses) {
            self.wait(60);
            all.push(delivery(event, &self.endpoint, status, self.stack.now()));
        }
        self.stack.put_deliveries(&all).await;
        all
    }

    /// Stores this many held deliveries. Returns their ids, oldest first.
    async fn hold(&self, count: usize) -> Vec<DeliveryId> {
        self.store(vec![Status::Held; count]).await.iter().map(|delivery| delivery.id).collect()
    }

    async fn recover(&self, selection: &Selection) -> Recovery {
        self.stack.webhooks().recover(self.endpoint.id, selection, |_| {}).await.unwrap()
    }

    /// Returns the deliveries that wait for their next attempt, oldest first.
    async fn pending(&self) -> Vec<DeliveryId> {
        let mut waiting = self.stack.deliveries(self.endpoint.id).await;
        waiting.retain(|delivery| delivery.progress.status == Status::Pending);
        waiting.iter().rev().map(|delivery| delivery.id).collect()
    }

    /// Returns how many of the endpoint's deliveries have this status.
    async fn count(&self, status: Status) -> u64 {
        let deliveries = self.stack.deliveries(self.endpoint.id).await;
        deliveries.iter().filter(|delivery| delivery.progress.status == status).count() as u64
    }
}

fn notify_if_sending(begun: &Notify, at: RecoveryProgress) {
    if matches!(at, RecoveryProgress::Sending { .. }) {
        begun.notify_one();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_a_whole_round_is_over_after_one_command_while_new_events_go_on() {
    let scene = Scene::answering(204).await;
    let stack = &scene.stack;
    let first = stack.queue(Queue::WebhooksFirst);
    let missed = scene.store([[Status::Failed].as_slice(), &[Status::Held; 18]].concat()).await;
    let new_events = async {
        let mut new = Vec::new();
        for event in 100..105 {
            new.push(scene.event(event).await);
            scene.handle(&first.take(1).await).await;
        }
        new
    };
    let selection = everything();
    let (recovery, new) = tokio::join!(scene.recover(&selection), new_events);
    stack.drain(scene.user).await;
    assert_eq!((recovery.found.failed, recovery.found.held, recovery.sent, recovery.left), (1, 18, 19, 0));
    assert!(recovery.stopped_by.is_none(), "{recovery:?}");

    let posts = scene.receiver.so_far();
    let posted: BTreeSet<DeliveryId> = posts.iter().map(|post| post.id().parse().unwrap()).collect();
    assert_eq!((posts.len(), posted), (24, missed.iter().map(|delivery| delivery.id).chain(new).collect()));
    assert_eq!(scene.count(Status::Delivered).await, 24);
    let again = scene.recover(&selection).await;
    assert_eq!((again.found.total(), again.sent), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_within_five_minutes_is_left_alone_and_what_waits_for_longer_is_sent_at_once() {
    let scene = Scene::answering(204).await;
    let now = scene.stack.now();
    let due_in = |seconds: i64| {
        let due = now.plus_millis(1_000 * seconds);
        move |progress: &mut Progress| (progress.due, progress.wake_at) = (due, Some(due))
    };
    let [soon, far] = [scene.put(1, due_in(5 * 60)).await, scene.put(2, due_in(5 * 60 + 1)).await];
    let before = scene.delivery(soon).await;
    let recovery = scene.recover(&everything()).await;
    assert_eq!((recovery.found.pending, recovery.found.total(), recovery.sent), (1, 1, 1), "{recovery:?}");
    let again = scene.recover(&everything()).await;
    assert_eq!((again.found.total(), again.sent), (0, 0), "its new round begins by itself");
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.delivery(far).await.progress.status, Status::Delivered);
    assert_eq!(scene.delivery(soon).await.progress.round, before.progress.round);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_recoveries_at_once_send_each_delivery_once() {
    let scene = Scene::answering(204).await;
    let held = scene.hold(30).await;
    let selection = everything();
    let (one, other) = tokio::join!(scene.recover(&selection), scene.recover(&selection));
    assert_eq!(one.sent + other.sent, 30);
    for recovery in [one, other] {
        assert_eq!((recovery.sent + recovery.changed, recovery.left), (recovery.found.total(), 0), "{recovery:?}");
    }
    assert_eq!(scene.pending().await, held);
    let deliveries = scene.stack.deliveries(scene.endpoint.id).await;
    assert!(deliveries.iter().all(|delivery| delivery.progress.round == 2), "{deliveries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_ends_when_the_endpoint_is_switched_off_or_removed() {
    let (scene, selection) = (Scene::answering(204).await, everything());
    for (user, is_removed) in [(10, false), (20, true)] {
        let scene = scene.other(user).await;
        scene.hold(50).await;
        let (admin, begun, id) = (scene.stack.webhooks(), Notify::new(), scene.endpoint.id);
        let ended = async {
            begun.notified().await;
            if is_removed {
                admin.remove(id).await.unwrap();
            } else {
                scene.disable().await;
            }
        };
        let (recovery, ()) = tokio::join!(admin.recover(id, &selection, |at| notify_if_sending(&begun, at)), ended);
        let recovery = recovery.unwrap();
        assert_eq!(recovery.sent + recovery.changed + recovery.left, 50);
        if is_removed {
            let stopped = matches!(recovery.stopped_by, Some(WebhookAdminError::Removed(gone)) if gone == id);
            assert!(stopped, "{recovery:?}");
            assert_eq!(scene.count(Status::Held).await, 0);
            assert!(admin.survey(id, &selection, |_| {}).await.is_ok());
            continue;
        }
        let stopped = matches!(recovery.stopped_by, Some(WebhookAdminError::Disabled(off)) if off == id);
        assert!(stopped && recovery.changed == 0 && (10..50).contains(&recovery.sent), "{recovery:?}");
        let counts = (scene.count(Status::Pending).await, scene.count(Status::Held).await);
        assert_eq!(counts, (recovery.sent, recovery.left));
        let refused = admin.recover(id, &selection, |_| {}).await;
        assert!(matches!(refused, Err(WebhookAdminError::Disabled(off)) if off == id), "{refused:?}");
        scene.enable().await;
        assert_eq!(scene.recover(&selection).await.sent, recovery.left);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_slows_down_while_what_it_sent_piles_up() {
    let scene = Scene::answering(204).await;
    scene.store([[Status::Pending; 990].as_slice(), &[Status::Held; 15]].concat()).await;
    let (admin, slowed, selection) = (scene.stack.webhooks(), Notify::new(), everything());
    let report = |at| {
        if let RecoveryProgress::Slowed { done, of } = at {
            assert_eq!((done, of), (10, 15));
            slowed.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = slowed.notified() => {}
        ended = admin.recover(scene.endpoint.id, &selection, report) => panic!("{ended:?}"),
    }
    let waiting = scene.stack.webhooks().store.count_waiting(scene.endpoint.id, scene.stack.now(), 2_000).await;
    assert_eq!(waiting.unwrap(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_skips_what_has_had_all_its_rounds_and_leaves_out_tests_and_what_is_unreadable_or_expired() {
    let scene = Scene::answering(204).await;
    scene.hold(1).await;
    scene.wait(35 * DAY_SECONDS);
    let now = scene.stack.now();
    let held = |(event, at): (u128, i64)| delivery(event, &scene.endpoint, Status::Held, now.plus_millis(at));
    let [first, unreadable, mut last, mut test, other] = [(2, -5), (3, -4), (4, -3), (5, -2), (6, -1)].map(held);
    last.progress.round = MAX_ROUNDS;
    test.is_test = true;
    scene.stack.put_deliveries(&[first.clone(), unreadable.clone(), last, test, other.clone()]).await;
    scene.set_event(unreadable.id, UNKNOWN).await;
    let recovery = scene.recover(&everything()).await;
    assert_eq!((recovery.found.total(), recovery.sent, recovery.too_many_rounds, recovery.left), (3, 2, 1, 0));
    assert_eq!(recovery.found.unreadable.len(), 1);
    assert_eq!(scene.pending().await, [first.id, other.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_survives_a_lost_answer_and_says_what_is_left_when_the_store_fails() {
    let scene = Scene::answering(204).await;
    let held = scene.hold(25).await;
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    let variables = Variables::new(&proxy.url);
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Bulk);
    let store = WebhookStore::new(client, "marketplace-webhooks".to_owned());
    let admin = WebhookAdmin { store, ..scene.stack.webhooks() };
    let (mut writes, fourteenth) = (0, held[13].to_string());
    let refused: &'static str = fourteenth.leak();
    proxy.plan(move |operation| {
        writes += u32::from(operation == "UpdateItem");
        match (operation, writes) {
            ("UpdateItem", 4) => Fault::LoseAnswer,
            ("UpdateItem", _) => Fault::Invalid(refused),
            _ => Fault::None,
        }
    });
    let recovery = admin.recover(scene.endpoint.id, &everything(), |_| {}).await.unwrap();
    assert!(matches!(recovery.stopped_by, Some(WebhookAdminError::Store(_))), "{recovery:?}");
    assert_eq!((recovery.sent, recovery.changed, recovery.left), (13, 0, 12));
    assert_eq!(scene.pending().await, held[..13]);
}
