//! Groups messages into batches that SQS accepts in one call.

/// The most bytes that SQS accepts in one message. The messages of one call share the same limit.
pub(super) const MAX_BATCH_BYTES: usize = 256 * 1_024;
/// The most messages that SQS accepts in one call.
const MAX_BATCH_ENTRIES: usize = 10;

/// A message with its line number.
pub(super) type NumberedMessage = (u64, String);

/// Splits messages into batches and keeps their order. No message may be larger than [`MAX_BATCH_BYTES`].
pub(super) fn batches(messages: Vec<NumberedMessage>) -> Vec<Vec<NumberedMessage>> {
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    for message in messages {
        let size = message.1.len();
        if batch.len() == MAX_BATCH_ENTRIES || bytes + size > MAX_BATCH_BYTES {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += size;
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

    fn sizes(messages: &[usize]) -> Vec<Vec<usize>> {
        let messages = messages.iter().zip(1..).map(|(size, line)| (line, "x".repeat(*size))).collect();
        batches(messages).iter().map(|batch| batch.iter().map(|(_, text)| text.len()).collect()).collect()
    }

    #[test]
    fn a_batch_has_at_most_ten_messages_and_as_many_bytes_as_sqs_takes() {
        assert_eq!(sizes(&[]), [[0; 0]; 0]);
        assert_eq!(sizes(&[1; 21]), [vec![1; 10], vec![1; 10], vec![1]]);
        assert_eq!(sizes(&[MAX_BATCH_BYTES, 1, MAX_BATCH_BYTES]), [[MAX_BATCH_BYTES], [1], [MAX_BATCH_BYTES]]);
        assert_eq!(sizes(&[MAX_BATCH_BYTES - 1, 1, 1]), [vec![MAX_BATCH_BYTES - 1, 1], vec![1]]);
    }
}
