//! The sender as it is deployed: its own binary under the Lambda Runtime API.

use aws_lambda_events::sqs::SqsEvent;
use guard::LOOPBACK_VARIABLE;
use local::environment::Variables;
use serde_json::json;
use tests::{Receiver, RuntimeApi, Stack, message, sale, uuid};
use webhooks::delivery::{Lane, Status};
use webhooks::delivery_id;

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_reaches_nothing_but_the_public_internet_whatever_its_environment_says() {
    let stack = Stack::new().await;
    let (canary, user) = (Receiver::answering(204).await, uuid(5).into());
    let (endpoint, secret) = stack.endpoint(user, &canary.url).await;
    stack.prove(&endpoint).await;
    stack.fan_out(&[sale(1, user)]).await;
    let id = delivery_id(uuid(1).into(), endpoint.id);
    let variables = Variables::new(&stack.aws.endpoint_url).with_loopback_webhooks();
    assert_eq!(variables.get(LOOPBACK_VARIABLE).as_deref(), Some("1"));
    let mut sender = RuntimeApi::run("webhook", &variables).await;
    let mut batch = SqsEvent::default();
    batch.records = vec![stack.next_message(id).await, message(Lane::Retry, "unreadable")];
    batch.records[1].message_id = Some("poison".to_owned());
    let answer = sender.invoke(serde_json::to_value(&batch).unwrap()).await;
    assert_eq!(answer, json!({"batchItemFailures": []}));

    let delivery = stack.delivery_when(id, |delivery| delivery.progress.failed_attempts == 1).await;
    let [attempt] = &delivery.progress.attempts[..] else { panic!("{delivery:?}") };
    let error = attempt.error.as_deref().unwrap();
    assert_eq!((delivery.progress.status, attempt.status), (Status::Pending, None));
    assert!(error.contains("must use a public IP address"), "{error}");
    assert!(canary.so_far().is_empty());

    let (log, lines) = (sender.log(), sender.lines());
    let [defective, counts] = &lines[..] else { panic!("{log}") };
    assert_eq!((&defective.json["level"], &defective.json["message_id"]), (&json!("ERROR"), &json!("poison")));
    let count = |name: &str| counts.json[name].as_u64().unwrap();
    assert_eq!(["received", "Unacknowledged", "Defects"].map(count), [2, 1, 1]);
    assert!(!log.contains(&secret.reveal()[6..]) && !log.contains("127.0.0.1") && !log.contains("12.50"), "{log}");
}
