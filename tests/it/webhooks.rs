//! Webhooks from the feed to a receiver's socket.

use shared::webhooks::delivery::Status;
use tests::{Receiver, Stack, sale, to_loopback, uuid};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_delivered_once_to_each_endpoint_that_selected_it() {
    let stack = Stack::new().await;
    let (receiver, user) = (Receiver::answering(204).await, uuid(5).into());
    let (endpoint, _) = stack.endpoint(user, &receiver.url).await;
    let _workers = stack.workers_sending(to_loopback(1)).await;
    stack.feed_queue().send(&[sale(1, user).to_string(), sale(1, user).to_string()]).await;
    let arrived = receiver.received(1).await;
    let id = arrived[0].id().parse().unwrap();
    let delivery = stack.delivery_as(id, Status::Delivered).await;
    assert_eq!((delivery.endpoint_id, delivery.progress.attempts.len()), (endpoint.id, 1));
    assert_eq!(delivery.body.as_bytes(), arrived[0].body);
    stack.feed_queue().emptied().await;
    assert_eq!(receiver.so_far().len(), 1);
}
