//! The outcome of each message of a batch, and the batch's log lines.

use aws_lambda_events::sqs::SqsMessage;
use platform::metrics::{Meter, Metric};
use platform::store::StoreError;
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
    /// The delivery is held, because too many of its endpoint wait.
    Overflowed,
    /// The delivery waited until it was no longer kept, and has failed.
    Expired,
    /// The message calls for nothing any more: the delivery has moved on or has ended.
    Void,
    /// No attempt was made. The delivery waits in the table for the drain of its account.
    Waiting,
    /// A copy was sent to the retry lane, because another instance is making the attempt or something that it needs is
    /// unavailable.
    Postponed(String),
    /// The message called for a run of a drain. What the run did has lines of its own.
    Drained,
    /// The message, a row or a secret cannot be read, the store takes what the message calls for as invalid, or the code
    /// cannot put it together. None of these would change with another try. A copy goes to the dead-letter queue.
    Defective(String),
    /// Its copy cannot be sent, or its drain cannot be begun now. The message stays in its queue.
    Failed(String),
}

impl DispatchOutcome {
    /// Returns the outcome of a message that an error of the store stops for good.
    pub(crate) fn stopped_by(error: &StoreError) -> Self {
        match error {
            StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. } => {
                Self::Defective(error.to_string())
            }
            StoreError::Conflict | StoreError::Unavailable(_) => Self::Failed(error.to_string()),
        }
    }

    /// Returns the outcome of a message whose copy cannot be sent.
    pub(crate) fn uncopied(unsent: &Unsent) -> Self {
        Self::Failed(format!("its copy cannot be sent: {unsent}"))
    }
}

/// Logs one line for the batch and the deliveries of its drains, and one for each message that met a defect or failed. No line contains a body, a URL or
/// a secret.
pub(crate) fn log(
    meter: &Meter,
    records: &[SqsMessage],
    outcomes: &[DispatchOutcome],
    drained: &[DispatchOutcome],
    waits: &[u64],
) {
    for (record, outcome) in records.iter().zip(outcomes) {
        let message_id = record.message_id.as_deref();
        match outcome {
            DispatchOutcome::Defective(defect) => tracing::error!(message_id, defect, "defective"),
            DispatchOutcome::Failed(error) => tracing::error!(message_id, error, "failed"),
            _ => {}
        }
    }
    let tally = Tally::new(outcomes.iter().chain(drained));
    let because = outcomes
        .iter()
        .chain(drained)
        .find_map(|outcome| if let DispatchOutcome::Postponed(why) = outcome { Some(why) } else { None });
    let mut line = meter.line("batch");
    line.member("received", &outcomes.len());
    line.count(Metric::Delivered, tally.delivered);
    line.count(Metric::Unacknowledged, tally.unacknowledged);
    line.count(Metric::Exhausted, tally.exhausted);
    line.count(Metric::SwitchedOff, tally.switched_off);
    line.count(Metric::Held, tally.held);
    line.count(Metric::Overflowed, tally.overflowed);
    line.count(Metric::Expired, tally.expired);
    line.member("void", &tally.void);
    line.member("waiting", &tally.waiting);
    line.count(Metric::Postponed, tally.postponed);
    line.known("postponed_because", because);
    line.count(Metric::Defects, tally.defective);
    line.count(Metric::Failed, tally.failed);
    line.samples(Metric::EventToPost, waits);
    line.log(false);
}

/// How many messages of a batch had which outcome.
#[derive(Default)]
struct Tally {
    delivered: u64,
    /// Every attempt that failed, exhausted deliveries included.
    unacknowledged: u64,
    /// Every delivery whose last attempt failed, whether or not its endpoint was switched off.
    exhausted: u64,
    switched_off: u64,
    held: u64,
    overflowed: u64,
    expired: u64,
    void: u64,
    waiting: u64,
    postponed: u64,
    defective: u64,
    failed: u64,
}

impl Tally {
    fn new<'a>(outcomes: impl Iterator<Item = &'a DispatchOutcome>) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            tally.add(outcome);
        }
        tally
    }

    fn add(&mut self, outcome: &DispatchOutcome) {
        match outcome {
            DispatchOutcome::Delivered => self.delivered += 1,
            DispatchOutcome::Unacknowledged => self.unacknowledged += 1,
            DispatchOutcome::Exhausted => {
                self.unacknowledged += 1;
                self.exhausted += 1;
            }
            DispatchOutcome::SwitchedOff => {
                self.unacknowledged += 1;
                self.exhausted += 1;
                self.switched_off += 1;
            }
            DispatchOutcome::Held => self.held += 1,
            DispatchOutcome::Overflowed => self.overflowed += 1,
            DispatchOutcome::Expired => self.expired += 1,
            DispatchOutcome::Void => self.void += 1,
            DispatchOutcome::Waiting => self.waiting += 1,
            DispatchOutcome::Postponed(_) => self.postponed += 1,
            // A drain is no delivery.
            DispatchOutcome::Drained => {}
            DispatchOutcome::Defective(_) => self.defective += 1,
            DispatchOutcome::Failed(_) => self.failed += 1,
        }
    }
}
