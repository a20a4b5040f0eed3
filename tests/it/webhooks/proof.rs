//! After a change of the URL's host, an owner sends older deliveries there only once a test got there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use admin::owner::Owner;
use admin::webhooks::{Recoverable, Selection, WebhookAdminError};
use common::ids::DeliveryId;
use common::timestamp::Timestamp;
use tests::{Answer, Receiver};
use tokio::time::Duration;
use webhooks::delivery::{Progress, Status};

use super::{Scene, receiver};

impl Scene {
    /// Stores a failed delivery.
    async fn ended(&self, event: u128) -> DeliveryId {
        let now = self.stack.now();
        let failed = |progress: &mut Progress| *progress = Progress::new(self.id(event), Status::Failed, now, now);
        self.put(event, failed).await
    }

    /// Gives the endpoint another URL, a second after whatever was before.
    async fn moved(&self, url: &str) -> Timestamp {
        self.wait(1);
        self.updated(Some(url), None).await;
        self.wait(1);
        self.stack.now()
    }

    /// Sends a delivery again as its owner. Returns whether that may be done.
    async fn may_resend(&self, id: DeliveryId) -> bool {
        let (keys, webhooks) = (self.stack.admin.keys(), self.stack.webhooks());
        self.wait(60);
        match Owner::new(self.user, &keys, &webhooks).resend_delivery(id).await {
            Ok(sent) => sent == id,
            Err(WebhookAdminError::Unproven(endpoint)) => {
                assert_eq!(endpoint, self.endpoint.id);
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends all deliveries of a time again as their owner. Returns how many, if that may be done.
    async fn may_resend_all(&self, since: Option<Timestamp>) -> Option<u64> {
        let (keys, webhooks) = (self.stack.admin.keys(), self.stack.webhooks());
        let selection = Selection { statuses: Recoverable::ALL.into(), since, until: None };
        let owner = Owner::new(self.user, &keys, &webhooks);
        match owner.resend_deliveries(self.endpoint.id, &selection, Duration::from_secs(20)).await {
            Ok(recovery) => Some(recovery.sent),
            Err(WebhookAdminError::Unproven(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a test and makes its attempt.
    async fn tested(&self) -> Status {
        let id = self.stack.webhooks().test(self.endpoint.id, None).await.unwrap();
        self.stack.drain(self.user).await;
        self.standing(id).await.0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_deliveries_go_to_another_host_only_once_a_test_was_acknowledged_there() {
    let scene = Scene::answering(204).await;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let other = receiver(move |_| Answer::Status(if well.load(Ordering::SeqCst) { 204 } else { 500 })).await;
    let older = [scene.ended(1).await, scene.ended(2).await];
    let changed_at = scene.moved(&other.url).await;
    let newer = scene.ended(3).await;
    assert!(!scene.may_resend(older[0]).await);
    assert_eq!(scene.may_resend_all(None).await, None);
    // What was created since then was meant for this host.
    assert_eq!(scene.may_resend_all(Some(changed_at)).await, Some(1));
    assert!(scene.may_resend(newer).await);
    let by_operator = scene.stack.webhooks().resend(older[0]).await;
    assert!(matches!(by_operator, Err(WebhookAdminError::Unproven(_))), "{by_operator:?}");

    assert_eq!(scene.tested().await, Status::Failed);
    assert!(!scene.may_resend(older[1]).await);
    assert_eq!(scene.may_resend_all(None).await, None);
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(scene.tested().await, Status::Delivered);
    assert!(scene.may_resend(older[1]).await);
    assert!(scene.may_resend_all(None).await.is_some());
}

/// An owner cannot begin rounds to a host of his own, and then turn them to another one.
#[tokio::test(flavor = "multi_thread")]
async fn rounds_that_were_begun_before_a_change_of_host_are_held() {
    let scene = Scene::answering(204).await;
    let other = Receiver::answering(204).await;
    let (resent, now) = (scene.ended(1).await, scene.stack.now());
    let pending = scene.put(2, |progress| progress.wake_at = Some(now)).await;
    scene.stack.webhooks().resend(resent).await.unwrap();
    scene.moved(&other.url).await;
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(resent).await.0, Status::Held);
    assert_eq!(scene.standing(pending).await.0, Status::Delivered, "it has had no round before");
    assert_eq!((scene.receiver.so_far().len(), other.so_far().len()), (0, 1));
    assert_eq!(scene.tested().await, Status::Delivered);
    assert!(scene.may_resend(resent).await);
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(resent).await.0, Status::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_path_of_a_host_needs_no_proof_and_a_host_that_was_left_needs_one_again() {
    let scene = Scene::answering(204).await;
    let other = Receiver::answering(204).await;
    let older = scene.ended(1).await;
    scene.moved(&format!("{}/other?path=1", scene.receiver.url)).await;
    assert!(scene.may_resend(older).await);
    scene.moved(&other.url).await;
    scene.moved(&scene.receiver.url).await;
    assert!(!scene.may_resend(older).await);
    // Its path alone does not count as proof either.
    scene.moved(&format!("{}/other", scene.receiver.url)).await;
    assert!(!scene.may_resend(older).await);
    assert_eq!(scene.tested().await, Status::Delivered);
    assert!(scene.may_resend(older).await);
    scene.stack.webhooks().rotate_secret(scene.endpoint.id).await.unwrap();
    assert!(scene.may_resend(older).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_the_host_before_acknowledges_late_proves_nothing_about_the_next_one() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let other = Receiver::answering(204).await;
    let older = scene.ended(1).await;
    // The endpoint has yet to prove this host as well.
    scene.moved(&other.url).await;
    scene.moved(&scene.receiver.url).await;
    let test = scene.stack.webhooks().test(scene.endpoint.id, None).await.unwrap();
    let changed = async {
        scene.receiver.received(1).await;
        scene.moved(&other.url).await;
        scene.receiver.release_all();
    };
    tokio::join!(scene.stack.drain(scene.user), changed);
    assert_eq!(scene.standing(test).await.0, Status::Delivered);
    assert!(!scene.may_resend(older).await);
    // The same test, sent again, gets to the other host.
    assert!(scene.may_resend(test).await);
    scene.stack.drain(scene.user).await;
    assert!(scene.may_resend(older).await);
}
