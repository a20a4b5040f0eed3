//! The outcome of each message of a batch, the copies of messages that were refused or postponed, and the batch's log
//! lines.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use common::backoff::equal_jitter_seconds;
use common::metrics::{Meter, Metric};
use common::queues::{FIELD, MAX_DELAY_SECONDS, MessageCopy, OTHERS, REASON, attribute};
use common::store::StoreError;
use feed::{ApplyOutcome, Rejection};

/// The outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    /// The message changed something.
    Changed,
    /// The message is not newer than what is stored.
    Unchanged,
    /// The message is invalid. A copy goes to the dead-letter queue.
    Refused(Rejection),
    /// The store takes what the message calls for as invalid, the code cannot put it together, or a row cannot be read.
    /// None of these would change with another try. A copy goes to the dead-letter queue.
    Defective(String),
    /// The store was busy or unavailable, or an event's endpoint cannot be read. That is not the message's fault. A copy
    /// goes back to the feed queue with a delay, so the message does not use up its receives.
    Postponed(String),
    /// Its copy cannot be sent. The message stays in the queue.
    Failed(String),
}

impl MessageOutcome {
    /// Returns the outcome of an event. If an endpoint cannot be read, its other endpoints have got the event. This one
    /// gets it as soon as a release runs that can read it.
    pub(crate) fn from_fan_out(fanned_out: Result<bool, StoreError>) -> Self {
        match fanned_out {
            Err(error @ StoreError::Corrupt { .. }) => Self::Postponed(error.to_string()),
            other => other.map(ApplyOutcome::from_changed).into(),
        }
    }
}

impl From<Result<ApplyOutcome, StoreError>> for MessageOutcome {
    fn from(outcome: Result<ApplyOutcome, StoreError>) -> Self {
        match outcome {
            Ok(ApplyOutcome::Changed) => Self::Changed,
            Ok(ApplyOutcome::Unchanged) => Self::Unchanged,
            Ok(ApplyOutcome::Rejected(rejection)) => Self::Refused(rejection),
            Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => {
                Self::Postponed(error.to_string())
            }
            Err(error @ (StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. })) => {
                Self::Defective(error.to_string())
            }
        }
    }
}

/// The message attribute that counts how often a message was postponed.
const POSTPONED: &str = "postponed";
/// The `field` of a rejection that concerns the message as a whole.
const WHOLE: &str = "$";

/// Makes a copy for the dead-letter queue.
pub(crate) fn refused(number: usize, record: &SqsMessage, rejection: &Rejection) -> Result<MessageCopy, BuildError> {
    let copy = SendMessageBatchRequestEntry::builder();
    let copy = copy.message_attributes(FIELD, attribute("String", shown(&rejection.field))?);
    let copy = copy.message_attributes(REASON, attribute("String", &rejection.reason)?);
    let others: Vec<_> = rejection.others.iter().map(|other| shown(&other.field)).collect();
    let copy = if others.is_empty() {
        copy
    } else {
        copy.message_attributes(OTHERS, attribute("String", &others.join(", "))?)
    };
    MessageCopy::new(number, record.body.clone(), copy)
}

/// Returns the path of a field as an attribute. A field without a name has an empty path too, and SQS refuses a message
/// with an empty attribute.
fn shown(path: &str) -> &str {
    if path.is_empty() { WHOLE } else { path }
}

/// Makes a copy for the feed queue, with a delay.
pub(crate) fn postponed(number: usize, record: &SqsMessage) -> Result<MessageCopy, BuildError> {
    let times = times_postponed(record);
    let delay = equal_jitter_seconds(longest_delay_seconds(times)).cast_signed();
    let copy = SendMessageBatchRequestEntry::builder().delay_seconds(delay);
    let times = attribute("Number", &times.saturating_add(1).to_string())?;
    MessageCopy::new(number, record.body.clone(), copy.message_attributes(POSTPONED, times))
}

/// Returns how often a message was postponed before.
fn times_postponed(record: &SqsMessage) -> u32 {
    let times = record.message_attributes.get(POSTPONED).and_then(|attribute| attribute.string_value.as_deref());
    times.and_then(|times| times.parse().ok()).unwrap_or_default()
}

/// Returns the longest delay, in seconds, of a message that was postponed `times` times before. It doubles from 2 to 512
/// and is then the longest that SQS allows.
fn longest_delay_seconds(times: u32) -> u32 {
    (2_u32 << times.min(9)).min(MAX_DELAY_SECONDS)
}

/// A message that is postponed this often gets a log line of its own. By then it has waited for 23 to 47 minutes.
const STUCK_POSTPONEMENTS: u64 = 12;

/// Logs one line for the batch, and one for each message that was refused, met a defect, failed or is postponed again
/// and again. No line contains a message's body.
pub(crate) fn log(meter: &Meter, records: &[SqsMessage], outcomes: &[MessageOutcome]) {
    for (record, outcome) in records.iter().zip(outcomes) {
        let message_id = record.message_id.as_deref();
        match outcome {
            MessageOutcome::Refused(Rejection { field, reason, others }) => {
                let others: Vec<_> = others.iter().map(ToString::to_string).collect();
                let others = (!others.is_empty()).then(|| others.join("; "));
                tracing::warn!(message_id, field, reason, others, "refused");
            }
            MessageOutcome::Defective(defect) => tracing::error!(message_id, defect, "defective"),
            MessageOutcome::Failed(error) => tracing::error!(message_id, error, "failed"),
            MessageOutcome::Postponed(reason) => {
                let times = u64::from(times_postponed(record)) + 1;
                if times >= STUCK_POSTPONEMENTS {
                    tracing::warn!(message_id, times, reason, "postponed again and again");
                }
            }
            MessageOutcome::Changed | MessageOutcome::Unchanged => {}
        }
    }
    let count = |is: fn(&MessageOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count() as u64;
    let because = outcomes
        .iter()
        .find_map(|outcome| if let MessageOutcome::Postponed(error) = outcome { Some(error) } else { None });
    let postponed = records.iter().zip(outcomes).filter(|(_, outcome)| matches!(outcome, MessageOutcome::Postponed(_)));
    let times: Vec<u64> = postponed.map(|(record, _)| u64::from(times_postponed(record)) + 1).collect();
    let mut line = meter.line("batch");
    line.member("received", &outcomes.len());
    line.count(Metric::Changed, count(|outcome| matches!(outcome, MessageOutcome::Changed)));
    line.count(Metric::Unchanged, count(|outcome| matches!(outcome, MessageOutcome::Unchanged)));
    line.count(Metric::Refused, count(|outcome| matches!(outcome, MessageOutcome::Refused(_))));
    line.count(Metric::Postponed, times.len() as u64);
    line.samples(Metric::PostponedTimes, &times);
    line.known("postponed_because", because);
    line.count(Metric::Defects, count(|outcome| matches!(outcome, MessageOutcome::Defective(_))));
    line.count(Metric::Failed, count(|outcome| matches!(outcome, MessageOutcome::Failed(_))));
    line.log(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_stay_within_what_sqs_takes() {
        let delays = [0, 1, 5, 8, 9, 10, u32::MAX].map(longest_delay_seconds);
        assert_eq!(delays, [2, 4, 64, 512, 900, 900, 900]);
    }

    #[test]
    fn a_number_that_is_none_counts_as_never_postponed() {
        let record = |value: &str| {
            let mut record = SqsMessage::default();
            let mut attribute = aws_lambda_events::sqs::SqsMessageAttribute::default();
            attribute.string_value = Some(value.to_owned());
            record.message_attributes.insert(POSTPONED.to_owned(), attribute);
            record
        };
        assert_eq!(["7", "-1", "often", ""].map(|value| times_postponed(&record(value))), [7, 0, 0, 0]);
        assert_eq!(times_postponed(&SqsMessage::default()), 0);
    }
}
