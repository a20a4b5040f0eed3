//! Groups messages into batches that SQS accepts in one call.

/// The most bytes that SQS accepts in one message, attributes included. The messages of one call share the same limit.
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
