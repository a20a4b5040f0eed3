//! The test event that an owner can ask for.

use admin::webhooks::WebhookAdminError;
use platform::resources::Queue;
use tests::{SignatureValidity, hand};
use types::event::EventKind;
use webhooks::delivery::Status;
use webhooks::endpoint::Switch;

use super::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_is_tried_once_whatever_the_result() {
    for (status, standing) in [(204, Status::Delivered), (500, Status::Failed)] {
        let scene = Scene::answering(status).await;
        let (stack, admin) = (&scene.stack, scene.stack.webhooks());
        let id = admin.test(scene.endpoint.id, None).await.unwrap();
        let message = stack.queue(Queue::WebhooksSlow).await.take(1).await;
        for _ in 0..2 {
            assert_eq!(hand(&stack.sender(), &message).await, [0; 0]);
            scene.wait(24 * 60 * 60);
            scene.sweep_and_drain().await;
        }
        assert_eq!(scene.standing(id).await, (standing, 1));
        assert_eq!((scene.switch().await, stack.take_notices().await), (Switch::On, vec![]));
        assert_eq!(stack.queue(Queue::WebhooksRetry).await.count().await, 0);
        let posts = scene.receiver.so_far();
        assert_eq!(posts.len(), 1);
        assert_eq!(posts[0].signed_with(&scene.secret), SignatureValidity { service: true, standard: true });
        assert_eq!(posts[0].json()["data"], EventKind::ListingSold.sample_data());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_off_gets_no_test_event() {
    let scene = Scene::answering(204).await;
    let admin = scene.stack.webhooks();
    admin.disable(scene.endpoint.id).await.unwrap();
    assert!(matches!(admin.test(scene.endpoint.id, None).await, Err(WebhookAdminError::Disabled(_))));
    assert_eq!(scene.stack.deliveries(scene.endpoint.id).await, []);
}
