//! Compares the template's queues and its secret with the project's.

use platform::resources::{MAX_RECEIVES, Queue};
use serde_json::{Value, json};
use tests::arn;

use super::{assert_same, deployed, names};

/// The longest time for which SQS keeps a message, 14 days, in seconds.
const RETENTION_SECONDS: u64 = 14 * 24 * 60 * 60;

#[test]
fn the_template_has_the_projects_queues() {
    let mut deployed = deployed("AWS::SQS::Queue", "QueueName");
    for queue in Queue::ALL {
        let name = names().queue(queue);
        let mut properties = deployed.remove(&name).unwrap_or_default();
        // The defaults of SQS.
        properties.entry("VisibilityTimeout").or_insert(json!(30));
        properties.entry("FifoQueue").or_insert(json!(false));
        assert_same(&name, properties, expected(queue));
    }
    assert!(deployed.is_empty(), "{deployed:?}");
}

fn expected(queue: Queue) -> Value {
    let mut properties = json!({
        "QueueName": names().queue(queue),
        "VisibilityTimeout": queue.visibility_seconds(),
        "FifoQueue": queue.is_fifo(),
        "MessageRetentionPeriod": RETENTION_SECONDS,
        "SqsManagedSseEnabled": true,
    });
    if let Some(dead) = queue.dead_letters() {
        let target = arn::queue(&names().queue(dead));
        properties["RedrivePolicy"] = json!({"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVES});
    }
    properties
}

#[test]
fn the_template_has_the_keyring_under_its_name() {
    assert_eq!(deployed("AWS::SecretsManager::Secret", "Name").into_keys().collect::<Vec<_>>(), [names().keyring()]);
}
