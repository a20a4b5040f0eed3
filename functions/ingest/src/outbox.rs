//! Sends copies of refused and postponed messages, before the messages are acknowledged.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::operation::send_message::builders::SendMessageFluentBuilder;
use aws_sdk_sqs::types::MessageAttributeValue;
use feed::Rejection;
use platform::backoff::equal_jitter_seconds;
use platform::store::explain;
use queues::MAX_DELAY_SECONDS;

use crate::outcome::MessageOutcome;

/// The message attribute that counts how often a message was postponed.
const POSTPONED: &str = "postponed";
/// The `field` of a rejection that concerns the message as a whole.
const WHOLE: &str = "$";
/// The longest attribute, in characters. It is enough for a person to read, and leaves room for the body within the
/// size limit of SQS.
const MAX_ATTRIBUTE_CHARS: usize = 256;

/// Sends to the feed queue and to its dead-letter queue.
pub(crate) struct Outbox {
    client: Client,
    feed: String,
    dead: String,
}

impl Outbox {
    pub(crate) fn new(client: Client, feed: String, dead: String) -> Self {
        Self { client, feed, dead }
    }

    /// Sends a copy of a message that was refused or postponed, and returns the message's final outcome. If it is not
    /// certain that the copy was sent, the message has failed and stays in its queue.
    pub(crate) async fn settle(&self, record: &SqsMessage, outcome: MessageOutcome) -> MessageOutcome {
        let copy = match &outcome {
            MessageOutcome::Refused(rejection) => self.refusal(rejection),
            MessageOutcome::Postponed(_) => self.postponement(times_postponed(record)),
            MessageOutcome::Changed | MessageOutcome::Unchanged | MessageOutcome::Failed(_) => return outcome,
        };
        // Body and attributes together may exceed the size limit of SQS. Then this fails on every receive, until the
        // redrive policy moves the message itself.
        let sent = match copy {
            Ok(copy) => copy.set_message_body(record.body.clone()).send().await.map_err(|error| explain(&error)),
            Err(error) => Err(error.to_string()),
        };
        match sent {
            Ok(_) => outcome,
            Err(error) => MessageOutcome::Failed(format!("its copy cannot be sent: {error}")),
        }
    }

    fn refusal(&self, rejection: &Rejection) -> Result<SendMessageFluentBuilder, BuildError> {
        let field = if rejection.field.is_empty() { WHOLE } else { &rejection.field };
        let copy = self.client.send_message().queue_url(&self.dead);
        let copy = copy.message_attributes("field", attribute("String", field)?);
        Ok(copy.message_attributes("reason", attribute("String", &rejection.reason)?))
    }

    fn postponement(&self, times: u32) -> Result<SendMessageFluentBuilder, BuildError> {
        let delay = equal_jitter_seconds(longest_delay_seconds(times)).cast_signed();
        let copy = self.client.send_message().queue_url(&self.feed).delay_seconds(delay);
        Ok(copy.message_attributes(POSTPONED, attribute("Number", &times.saturating_add(1).to_string())?))
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
}
