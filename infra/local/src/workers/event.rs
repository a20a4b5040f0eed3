//! The event that Lambda makes from a batch of messages.

use aws_lambda_events::encodings::Base64Data;
use aws_lambda_events::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::types::{Message, MessageAttributeValue};

/// Makes the event of a batch from the queue with this ARN.
pub(super) fn event(messages: &[Message], queue_arn: &str) -> SqsEvent {
    let mut event = SqsEvent::default();
    event.records = messages.iter().map(|message| record(message.clone(), queue_arn)).collect();
    event
}

fn record(message: Message, queue_arn: &str) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id = message.message_id;
    record.receipt_handle = message.receipt_handle;
    record.body = message.body;
    record.md5_of_body = message.md5_of_body;
    record.md5_of_message_attributes = message.md5_of_message_attributes;
    let attributes = message.attributes.unwrap_or_default();
    record.attributes = attributes.into_iter().map(|(name, value)| (name.as_str().to_owned(), value)).collect();
    let attributes = message.message_attributes.unwrap_or_default();
    record.message_attributes = attributes.into_iter().map(|(name, value)| (name, attribute(value))).collect();
    record.event_source = Some("aws:sqs".to_owned());
    record.event_source_arn = Some(queue_arn.to_owned());
    record.aws_region = queue_arn.split(':').nth(3).map(str::to_owned);
    record
}

fn attribute(value: MessageAttributeValue) -> SqsMessageAttribute {
    let mut attribute = SqsMessageAttribute::default();
    attribute.string_value = value.string_value;
    attribute.binary_value = value.binary_value.map(|bytes| {
        let mut data = Base64Data::default();
        data.0 = bytes.into_inner();
        data
    });
    attribute.data_type = Some(value.data_type);
    attribute
}
