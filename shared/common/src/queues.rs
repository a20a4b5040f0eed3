//! The way to SQS: a client, the URLs of the queues that a function uses, their check before its first event, the
//! batches that SQS accepts in one call, and copies of received messages.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsMessage};
pub use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder;
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use crate::aws::{Environment, Missing, Patience};
use crate::metrics::{Meter, Metric};
use crate::preflight::{ProbeFuture, ResourceKind};
use crate::resources::Queue;
use crate::runtime::{Service, catch_panic};
use crate::store::explain;

/// The longest delay of a message that SQS allows, in seconds.
pub const MAX_DELAY_SECONDS: u32 = 900;

/// Makes a client of SQS.
pub fn client(environment: &Environment, patience: Patience) -> Client {
    let mut config = aws_sdk_sqs::config::Builder::from(&environment.config(patience));
    config.set_interceptors(environment.interceptors());
    Client::from_conf(config.build())
}

/// Makes a client with [`Patience::Request`], reads the URLs of queues, and notes that the queues are to be checked. If
/// several URLs are missing, the error names all of them at once.
pub fn from_service<const N: usize>(
    service: &Service<'_>,
    queues: [Queue; N],
) -> Result<(Client, [String; N]), Missing> {
    let urls = service.variables(queues.map(Queue::variable))?;
    let client = client(service.environment(), Patience::Request);
    for url in &urls {
        let (client, probed) = (client.clone(), url.clone());
        service.check(ResourceKind::Queue, name(url), move || probe(&client, &probed));
    }
    Ok((client, urls))
}

/// Returns the name of the queue at a URL.
pub fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

/// Checks a queue by asking for its ARN. This needs the permission `sqs:GetQueueAttributes`.
pub fn probe(client: &Client, url: &str) -> ProbeFuture {
    let attributes = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
    async move { Ok(attributes.send().await.map(drop)?) }.boxed()
}

/// Handles a batch of messages. If that panics, handles each message by itself, as if it had come again: so a panic
/// costs only the message that causes it. That one has failed, stays in its queue, and counts as a defect.
pub async fn isolating_panics<'r>(
    meter: &Meter,
    records: &'r [SqsMessage],
    handle: impl Fn(&'r [SqsMessage]) -> BoxFuture<'r, SqsBatchResponse>,
) -> SqsBatchResponse {
    if let Some(response) = catch_panic(handle(records)).await {
        return response;
    }
    let each = join_all(records.iter().map(|record| catch_panic(handle(std::slice::from_ref(record))))).await;
    let mut response = SqsBatchResponse::default();
    for (record, handled) in records.iter().zip(each) {
        if let Some(handled) = handled {
            response.batch_item_failures.extend(handled.batch_item_failures);
        } else {
            // SQS always gives an id. Without one, Lambda would take the whole batch as failed.
            response.add_failure(record.message_id.clone().unwrap_or_default());
            let mut line = meter.line("a message panicked");
            line.known("message_id", record.message_id.as_deref());
            line.count(Metric::Defects, 1);
            line.log(true);
        }
    }
    response
}

/// The longest attribute, in characters. It is enough for a person to read, and leaves room for the body within the
/// size limit of SQS.
const MAX_ATTRIBUTE_CHARS: usize = 256;
/// The attribute of a dead letter that says why the store takes what the message calls for as invalid.
pub const DEFECT: &str = "defect";
/// The attribute of a dead letter of the feed that names the first field that breaks a rule.
pub const FIELD: &str = "field";
/// The attribute of a dead letter of the feed that says which rule this field breaks.
pub const REASON: &str = "reason";
/// The attribute of a dead letter of the feed that lists the other fields that break rules.
pub const OTHERS: &str = "others";

/// A copy of a received message. A function sends it before it acknowledges the message.
#[derive(Clone, Debug)]
pub struct MessageCopy {
    /// The message's number in its batch.
    number: usize,
    entry: SendMessageBatchRequestEntry,
}

/// The number of a message whose copy may not have been sent, and the reason.
pub type UnsentCopy = (usize, String);

impl MessageCopy {
    /// Makes a copy from the message's number in its batch, its body, and a builder with everything else. If body
    /// and attributes together are larger than [`MAX_BATCH_BYTES`], the copy has no attributes.
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

/// The most bytes that are sent in one message, attributes included, and in one call. SQS accepts 1 MiB since August 2025,
/// the local stack no more than this. No queue of ours sets a limit of its own.
pub const MAX_BATCH_BYTES: usize = 256 * 1_024;
/// The most messages that SQS accepts in one call.
const MAX_BATCH_ENTRIES: usize = 10;

/// Splits messages into batches and keeps their order. `bytes` returns the size of a message. A message that is larger
/// than [`MAX_BATCH_BYTES`] gets a batch of its own.
pub fn batches<M>(messages: Vec<M>, bytes: impl Fn(&M) -> usize) -> Vec<Vec<M>> {
    let (mut batches, mut batch, mut total) = (Vec::new(), Vec::new(), 0);
    for message in messages {
        let size = bytes(&message);
        let full = batch.len() == MAX_BATCH_ENTRIES || total + size > MAX_BATCH_BYTES;
        if full && !batch.is_empty() {
            batches.push(std::mem::take(&mut batch));
            total = 0;
        }
        total += size;
        batch.push(message);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
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

    fn sizes(messages: &[usize]) -> Vec<Vec<usize>> {
        batches(messages.to_vec(), |size| *size)
    }

    #[test]
    fn a_batch_has_at_most_ten_messages_and_as_many_bytes_as_sqs_takes() {
        assert_eq!(sizes(&[]), [[0; 0]; 0]);
        assert_eq!(sizes(&[1; 21]), [vec![1; 10], vec![1; 10], vec![1]]);
        assert_eq!(sizes(&[MAX_BATCH_BYTES, 1, MAX_BATCH_BYTES]), [[MAX_BATCH_BYTES], [1], [MAX_BATCH_BYTES]]);
        assert_eq!(sizes(&[MAX_BATCH_BYTES - 1, 1, 1]), [vec![MAX_BATCH_BYTES - 1, 1], vec![1]]);
    }

    #[test]
    fn a_message_that_is_too_large_takes_no_other_along() {
        let large = MAX_BATCH_BYTES + 1;
        assert_eq!(sizes(&[large, 1, large]), [[large], [1], [large]]);
    }
}
