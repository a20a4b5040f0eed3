//! What became of a message or of a drained delivery, and the log line that counts it.

use aws_lambda_events::sqs::SqsMessage;
use common::metrics::{Meter, Metric};
use common::store::StoreError;
use webhooks::Unsent;

/// The outcome of a message, or of a delivery in a run of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DispatchOutcome {
    /// The endpoint acknowledged the attempt.
    Delivered,
    /// The attempt failed, and its failure is recorded.
    Unacknowledged,
    /// The delivery's last attempt failed, and its failure is recorded.
    Exhausted,
    /// The delivery's last attempt failed, and its endpoint was switched off because of it.
    SwitchedOff,
    /// The delivery is held, because its endpoint is off, or because no test has reached the host to which it was sent again.
    Held,
    /// The delivery waited until it was no longer kept, and has failed.
    Expired,
    /// The message calls for nothing any more: the delivery has moved on or has ended.
    Void,
    /// No attempt was made. The delivery waits in the table for the drain of its account.
    Waiting,
    /// Another instance is making the attempt, or something that it needs is unavailable. A copy of the message was sent, or
    /// the drain tries again.
    Postponed(String),
    /// The message called for a run of a drain. What the run did has lines of its own.
    Drained,
    /// The message, a row or a secret cannot be read, the store takes what the message calls for as invalid, or the code
    /// cannot put it together. None of these would change with another try. A copy goes to the dead-letter queue.
    Defective(String),
    /// Its copy cannot be sent. The message stays in its queue.
    Failed(String),
}

impl DispatchOutcome {
    /// The message stays in its queue. The panic hook has logged why.
    pub(crate) fn panicked() -> Self {
        Self::Failed("its handling panicked".to_owned())
    }

    /// Returns the outcome of a message whose copy cannot be sent.
    pub(crate) fn uncopied(unsent: &Unsent) -> Self {
        Self::Failed(format!("its copy cannot be sent: {unsent}"))
    }
}

/// Returns whether the same call may succeed later.
pub(crate) fn is_transient(error: &StoreError) -> bool {
    match error {
        StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_) => true,
        StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. } => false,
    }
}

/// Logs one line for the batch and the deliveries of its drains, and one for each message that met a defect or failed. No
/// line contains a body, a URL or a secret.
pub(crate) fn log(
    meter: &Meter,
    records: &[SqsMessage],
    outcomes: &[DispatchOutcome],
    drained: &[DispatchOutcome],
    waits: &[u64],
    keyless: u64,
) {
    use DispatchOutcome::{
        Defective, Delivered, Exhausted, Expired, Failed, Held, Postponed, SwitchedOff, Unacknowledged, Void, Waiting,
    };
    for (record, outcome) in records.iter().zip(outcomes) {
        let message_id = record.message_id.as_deref();
        match outcome {
            Defective(defect) => tracing::error!(message_id, defect, "defective"),
            Failed(error) => tracing::error!(message_id, error, "failed"),
            _ => {}
        }
    }
    let all = || outcomes.iter().chain(drained);
    let count = |is: fn(&DispatchOutcome) -> bool| all().filter(|outcome| is(outcome)).count() as u64;
    let because = all().find_map(|outcome| match outcome {
        Postponed(why) => Some(why),
        _ => None,
    });
    let mut line = meter.line("batch");
    line.member("received", &outcomes.len());
    line.count(Metric::Delivered, count(|outcome| matches!(outcome, Delivered)));
    // Every attempt that failed.
    line.count(Metric::Unacknowledged, count(|outcome| matches!(outcome, Unacknowledged | Exhausted | SwitchedOff)));
    // Every delivery whose last attempt failed, whether or not its endpoint was switched off.
    line.count(Metric::Exhausted, count(|outcome| matches!(outcome, Exhausted | SwitchedOff)));
    line.count(Metric::SwitchedOff, count(|outcome| matches!(outcome, SwitchedOff)));
    line.count(Metric::Held, count(|outcome| matches!(outcome, Held)));
    line.count(Metric::Expired, count(|outcome| matches!(outcome, Expired)));
    line.member("void", &count(|outcome| matches!(outcome, Void)));
    line.member("waiting", &count(|outcome| matches!(outcome, Waiting)));
    line.count(Metric::Postponed, count(|outcome| matches!(outcome, Postponed(_))));
    line.known("postponed_because", because);
    line.count(Metric::Defects, count(|outcome| matches!(outcome, Defective(_))));
    // Attempts without a key wait. If that lasts, the alarm on failures must tell of it: once for each batch.
    line.count(Metric::Failed, count(|outcome| matches!(outcome, Failed(_))) + keyless.min(1));
    line.samples(Metric::EventToPost, waits);
    line.log(false);
}
