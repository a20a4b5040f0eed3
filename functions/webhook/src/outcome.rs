//! The outcome of each message of a batch, and the batch's log lines.

use aws_lambda_events::sqs::SqsMessage;
use platform::metrics::{Meter, Metric};
use webhooks::Unsent;

/// The outcome of a message.
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
    /// The delivery is held, because its endpoint is off.
    Held,
    /// The message calls for nothing any more: the delivery has moved on or has ended.
    Void,
    /// A copy was sent to the retry queue without an attempt, because the endpoint is slow or busy.
    Forwarded,
    /// A copy was sent to the retry queue, because another instance is making the attempt or something that it needs is
    /// unavailable.
    Postponed(String),
    /// The message was a probe, and when it was sent is recorded.
    Probed,
    /// The message stays in its queue. After a few receives it is moved to the dead-letter queue.
    Failed(String),
}

impl DispatchOutcome {
    /// Returns the outcome of a message whose copy cannot be sent.
    pub(crate) fn uncopied(unsent: &Unsent) -> Self {
        Self::Failed(format!("its copy cannot be sent: {unsent}"))
    }
}

/// Logs one line for the batch, and one for each message that failed. No line contains a body, a URL or a secret.
pub(crate) fn log(meter: &Meter, records: &[SqsMessage], outcomes: &[DispatchOutcome], waits: &[u64]) {
    for (record, outcome) in records.iter().zip(outcomes) {
        if let DispatchOutcome::Failed(error) = outcome {
            tracing::error!(message_id = record.message_id.as_deref(), error, "failed");
        }
    }
    let count = |is: fn(&DispatchOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count() as u64;
    let because = outcomes
        .iter()
        .find_map(|outcome| if let DispatchOutcome::Postponed(why) = outcome { Some(why) } else { None });
    let mut line = meter.line("batch");
    line.member("received", &outcomes.len());
    line.count(Metric::Delivered, count(|outcome| matches!(outcome, DispatchOutcome::Delivered)));
    line.count(
        Metric::Unacknowledged,
        count(|outcome| {
            matches!(
                outcome,
                DispatchOutcome::Unacknowledged | DispatchOutcome::Exhausted | DispatchOutcome::SwitchedOff
            )
        }),
    );
    line.count(
        Metric::Exhausted,
        count(|outcome| matches!(outcome, DispatchOutcome::Exhausted | DispatchOutcome::SwitchedOff)),
    );
    line.count(Metric::SwitchedOff, count(|outcome| matches!(outcome, DispatchOutcome::SwitchedOff)));
    line.count(Metric::Held, count(|outcome| matches!(outcome, DispatchOutcome::Held)));
    line.member("void", &count(|outcome| matches!(outcome, DispatchOutcome::Void)));
    line.member("forwarded", &count(|outcome| matches!(outcome, DispatchOutcome::Forwarded)));
    line.count(Metric::Postponed, count(|outcome| matches!(outcome, DispatchOutcome::Postponed(_))));
    line.known("postponed_because", because);
    line.count(Metric::Failed, count(|outcome| matches!(outcome, DispatchOutcome::Failed(_))));
    line.samples(Metric::EventToPost, waits);
    line.log(false);
}
