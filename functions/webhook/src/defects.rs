//! Moves messages that met a defect, or that something unreadable stops, to the dead-letter queue, with the reason.
//! Waiting would not help them.

use aws_lambda_events::sqs::SqsMessage;
use queues::{MessageCopy, send_copies};

use crate::Webhook;
use crate::outcome::DispatchOutcome;

impl Webhook {
    /// Sends a copy of each message that met a defect to the dead-letter queue. If it is not certain that a copy was
    /// sent, its message has failed and stays in its queue.
    ///
    /// The delivery itself stays as it is. If it is pending, its wake-up makes `sweep` send another message for it.
    pub(crate) async fn bury_defective(&self, records: &[SqsMessage], outcomes: &mut [DispatchOutcome]) {
        let (mut copies, mut unsent) = (Vec::new(), Vec::new());
        for (number, (record, outcome)) in records.iter().zip(outcomes.iter()).enumerate() {
            let DispatchOutcome::Defective(defect) = outcome else { continue };
            match MessageCopy::defective(number, record.body.clone(), defect) {
                Ok(copy) => copies.push(copy),
                Err(error) => unsent.push((number, error.to_string())),
            }
        }
        unsent.extend(send_copies(&self.sqs, &self.dead_queue, copies).await);
        for (number, error) in unsent {
            outcomes[number] = DispatchOutcome::Failed(format!("its copy cannot be sent: {error}"));
        }
    }
}
