//! Copies of received messages. A function sends them before it acknowledges the messages.

use crate::store::explain;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use futures_util::future::join_all;

use super::batches::{MAX_BATCH_BYTES, batches};

/// The longest attribute, in characters. It is enough for a person to read, and leaves room for the body within the
/// size limit of SQS.
const MAX_ATTRIBUTE_CHARS: usize = 256;
/// The message attribute that says why the store takes what a message calls for as invalid.
const DEFECT: &str = "defect";

/// A copy of a message.
#[derive(Clone, Debug)]
pub struct MessageCopy {
    /// The message's number in its batch.
    number: usize,
    entry: SendMessageBatchRequestEntry,
}

/// The number of a message whose copy may not have been sent, and the reason.
pub type UnsentCopy = (usize, String);

impl MessageCopy {
    /// Makes a copy from the message's number in its batch, its body, and a builder with everything else. If SQS would
    /// take body and attributes together as too large, the copy has no attributes.
    pub fn new(
        number: usize,
        body: Option<String>,
        copy: SendMessageBatchRequestEntryBuilder,
    ) -> Result<Self, BuildError> {
        // Message ids may repeat in a batch, but numbers do not.
        let entry = copy.id(number.to_string()).set_message_body(body).build()?;
        let mut copy = Self { number, entry };
        if copy.bytes() > MAX_BATCH_BYTES {
            copy.entry.message_attributes = None;
        }
        Ok(copy)
    }

    /// Makes a copy for the dead-letter queue of a message that met a defect.
    pub fn defective(number: usize, body: Option<String>, defect: &str) -> Result<Self, BuildError> {
        let copy = SendMessageBatchRequestEntry::builder();
        Self::new(number, body, copy.message_attributes(DEFECT, attribute("String", defect)?))
    }

    /// Returns its size as SQS counts it.
    fn bytes(&self) -> usize {
        let attributes = self.entry.message_attributes.iter().flatten();
        let attributes = attributes.map(|(name, attribute)| {
            let value = attribute.string_value.as_deref().unwrap_or_default();
            name.len() + attribute.data_type.len() + value.len()
        });
        self.entry.message_body.len() + attributes.sum::<usize>()
    }
}

/// Sends copies to a queue, and returns those that may not have been sent.
pub async fn send_copies(client: &Client, queue_url: &str, copies: Vec<MessageCopy>) -> Vec<UnsentCopy> {
    let batches = batches(copies, MessageCopy::bytes).into_iter().map(|batch| send(client, queue_url, batch));
    join_all(batches).await.into_iter().flatten().collect()
}

async fn send(client: &Client, queue_url: &str, copies: Vec<MessageCopy>) -> Vec<UnsentCopy> {
    let (numbers, entries): (Vec<usize>, Vec<_>) = copies.into_iter().map(|copy| (copy.number, copy.entry)).unzip();
    let request = client.send_message_batch().queue_url(queue_url).set_entries(Some(entries));
    let sent = match request.send().await {
        Ok(sent) => sent,
        Err(error) => return numbers.into_iter().map(|number| (number, explain(&error))).collect(),
    };
    let accepted = |number: usize| sent.successful.iter().any(|entry| entry.id == number.to_string());
    let reason = |number: usize| {
        let failure = sent.failed.iter().find(|entry| entry.id == number.to_string());
        failure.map_or_else(|| "SQS says nothing about it".to_owned(), |failure| failure.code.clone())
    };
    numbers.into_iter().filter(|number| !accepted(*number)).map(|number| (number, reason(number))).collect()
}

/// Builds a message attribute from the beginning of a text. Characters that XML 1.0 cannot hold are replaced, because
/// SQS refuses them.
pub fn attribute(data_type: &str, text: &str) -> Result<MessageAttributeValue, BuildError> {
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
    fn an_attribute_holds_only_what_sqs_takes() {
        let value = |text: &str| attribute("String", text).unwrap().string_value.unwrap();
        assert_eq!(value("tab\tand\0and\u{1b}[2J\u{ffff}é𝄞"), "tab\tand\u{fffd}and\u{fffd}[2J\u{fffd}é𝄞");
        assert_eq!(value(&"é".repeat(100_000)).chars().count(), MAX_ATTRIBUTE_CHARS);
    }

    #[test]
    fn the_size_of_a_copy_counts_its_body_and_attributes() {
        let copy = MessageCopy::defective(3, Some("é".repeat(100)), "no").unwrap();
        let attributes = ["defect", "String", "no"];
        assert_eq!(copy.bytes(), 200 + attributes.map(str::len).iter().sum::<usize>());
        assert_eq!(copy.entry.id, "3");
    }

    #[test]
    fn a_copy_that_is_too_large_with_its_attributes_has_none() {
        let attributes = ["defect", "String", "no"].map(str::len).iter().sum::<usize>();
        for (body, expected) in [(MAX_BATCH_BYTES - attributes, 1), (MAX_BATCH_BYTES, 0)] {
            let copy = MessageCopy::defective(0, Some("x".repeat(body)), "no").unwrap();
            assert_eq!(copy.entry.message_attributes.iter().flatten().count(), expected);
            assert_eq!(copy.bytes(), MAX_BATCH_BYTES);
        }
    }
}
