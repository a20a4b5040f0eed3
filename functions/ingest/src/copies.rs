//! Copies of messages that were refused or postponed.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use common::backoff::equal_jitter_seconds;
use common::queues::{MAX_DELAY_SECONDS, MessageCopy, attribute};
use feed::Rejection;

/// The message attribute that counts how often a message was postponed.
const POSTPONED: &str = "postponed";
/// The `field` of a rejection that concerns the message as a whole.
const WHOLE: &str = "$";

/// Makes a copy for the dead-letter queue.
pub(crate) fn refused(number: usize, record: &SqsMessage, rejection: &Rejection) -> Result<MessageCopy, BuildError> {
    let copy = SendMessageBatchRequestEntry::builder();
    let copy = copy.message_attributes("field", attribute("String", shown(&rejection.field))?);
    let copy = copy.message_attributes("reason", attribute("String", &rejection.reason)?);
    let others: Vec<_> = rejection.others.iter().map(|other| shown(&other.field)).collect();
    let copy = if others.is_empty() {
        copy
    } else {
        copy.message_attributes("others", attribute("String", &others.join(", "))?)
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
pub(crate) fn times_postponed(record: &SqsMessage) -> u32 {
    let times = record.message_attributes.get(POSTPONED).and_then(|attribute| attribute.string_value.as_deref());
    times.and_then(|times| times.parse().ok()).unwrap_or_default()
}

/// Returns the longest delay, in seconds, of a message that was postponed `times` times before. It doubles from 2 to 512
/// and is then the longest that SQS allows.
fn longest_delay_seconds(times: u32) -> u32 {
    (2_u32 << times.min(9)).min(MAX_DELAY_SECONDS)
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
