//! Message groups in standard queues. SQS takes them as a hint (fair queues), but the emulated SQS refuses them.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::Response;
use rustack_sqs_core::handler::RustackSqsHandler;
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_http::dispatch::SqsHandler;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::operations::SqsOperation;
use serde_json::Value;

const GROUP_FIELD: &str = "MessageGroupId";

/// Accepts message groups in standard queues and ignores them.
pub(super) struct MessageGroupFilter(pub(super) RustackSqsHandler);

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<SqsResponseBody>, SqsError>> + Send>>;

impl SqsHandler for MessageGroupFilter {
    fn handle_operation(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let is_sending = matches!(operation, SqsOperation::SendMessage | SqsOperation::SendMessageBatch);
        let body = if is_sending { without_groups(&body).unwrap_or(body) } else { body };
        self.0.handle_operation(operation, body)
    }
}

/// Returns the request without message groups. Returns `None` if the queue is FIFO, where groups matter, or if the
/// body is not a request to send messages.
fn without_groups(body: &[u8]) -> Option<Bytes> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    if request["QueueUrl"].as_str()?.rsplit_once('.').is_some_and(|(_, end)| end == "fifo") {
        return None;
    }
    request.as_object_mut()?.remove(GROUP_FIELD);
    for entry in request["Entries"].as_array_mut().into_iter().flatten() {
        entry.as_object_mut()?.remove(GROUP_FIELD);
    }
    Some(request.to_string().into())
}
