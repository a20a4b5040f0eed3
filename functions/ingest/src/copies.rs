//! Copies of messages that were refused or postponed.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use feed::Rejection;
use platform::backoff::equal_jitter_seconds;
use queues::MAX_DELAY_SECONDS;

/// The message attribute that counts how often a message was postponed.
const POSTPONED: &str = "postponed";
/// The `field` of a rejection that concerns the message as a whole.
const WHOLE: &str = "$";
/// The longest attribute, in characters. It is enough for a person to read, and leaves room for the body within the
/// size limit of SQS.
const MAX_ATTRIBUTE_CHARS: usize = 256;

/// A copy of a message.
pub(crate) struct MessageCopy {
    /// The message's place in its batch.
    pub(crate) place: usize,
    pub(crate) entry: SendMessageBatchRequestEntry,
}

impl MessageCopy {
    /// Makes a copy for the dead-letter queue.
    pub(crate) fn refused(place: usize, record: &SqsMessage, rejection: &Rejection) -> Result<Self, BuildError> {
        let field = if rejection.field.is_empty() { WHOLE } else { &rejection.field };
        let copy = SendMessageBatchRequestEntry::builder();
        let copy = copy.message_attributes("field", attribute("String", field)?);
        Self::new(place, record, copy.message_attributes("reason", attribute("String", &rejection.reason)?))
    }

    /// Makes a copy for the feed queue, with a delay.
    pub(crate) fn postponed(place: usize, record: &SqsMessage) -> Result<Self, BuildError> {
        let times = times_postponed(record);
        let delay = equal_jitter_seconds(longest_delay_seconds(times)).cast_signed();
        let copy = SendMessageBatchRequestEntry::builder().delay_seconds(delay);
        let times = attribute("Number", &times.saturating_add(1).to_string())?;
        Self::new(place, record, copy.message_attributes(POSTPONED, times))
    }

    fn new(place: usize, record: &SqsMessage, copy: SendMessageBatchRequestEntryBuilder) -> Result<Self, BuildError> {
        // Message ids may repeat in a batch, but places do not.
        let entry = copy.id(place.to_string()).set_message_body(record.body.clone()).build()?;
        Ok(Self { place, entry })
    }

    /// Returns its size as SQS counts it.
    pub(crate) fn bytes(&self) -> usize {
        let attributes = self.entry.message_attributes.iter().flatten();
        let attributes = attributes.map(|(name, attribute)| {
            let value = attribute.string_value.as_deref().unwrap_or_default();
            name.len() + attribute.data_type.len() + value.len()
        });
        self.entry.message_body.len() + attributes.sum::<usize>()
    }
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

/// Builds an attribute from the beginning of a text. Characters that XML 1.0 cannot hold are replaced, because SQS
/// refuses them.
fn attribute(data_type: &str, text: &str) -> Result<MessageAttributeValue, BuildError> {
    let accepted = |c: char| match c {
        '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => c,
        _ => char::REPLACEMENT_CHARACTER,
    };
    let value: String = text.chars().take(MAX_ATTRIBUTE_CHARS).map(accepted).collect();
    MessageAttributeValue::builder().data_type(data_type).string_value(value).build()
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
    fn an_attribute_holds_only_what_sqs_takes() {
        let value = |text: &str| attribute("String", text).unwrap().string_value.unwrap();
        assert_eq!(value("tab\tand\0and\u{1b}[2J\u{ffff}é𝄞"), "tab\tand\u{fffd}and\u{fffd}[2J\u{fffd}é𝄞");
        assert_eq!(value(&"é".repeat(100_000)).chars().count(), MAX_ATTRIBUTE_CHARS);
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

    #[test]
    fn the_size_of_a_copy_counts_its_body_and_attributes() {
        let mut record = SqsMessage::default();
        record.body = Some("é".repeat(100));
        let copy = MessageCopy::refused(3, &record, &Rejection::new("type", "no")).unwrap();
        let attributes = ["field", "String", "type", "reason", "String", "no"];
        assert_eq!(copy.bytes(), 200 + attributes.map(str::len).iter().sum::<usize>());
        assert_eq!(copy.entry.id, "3");
    }
}
