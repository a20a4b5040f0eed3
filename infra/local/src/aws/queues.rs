//! The emulated SQS, with two things that it lacks. Standard queues take message groups, which are a hint in SQS (fair
//! queues). And many delayed messages do not make it slow ([`delays`](super::delays)).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use rustack_sqs_core::handler::RustackSqsHandler;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_http::dispatch::SqsHandler;
use rustack_sqs_http::response::json_response;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::{GetQueueAttributesInput, PurgeQueueInput, SendMessageBatchInput};
use rustack_sqs_model::operations::SqsOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::delays::{Delays, can_hold};

const GROUP_FIELD: &str = "MessageGroupId";
const DELAYED_COUNT: &str = "ApproximateNumberOfMessagesDelayed";

/// Answers the calls to SQS.
pub(super) struct Queues {
    sqs: Arc<RustackSqs>,
    handler: RustackSqsHandler,
    delays: Arc<Delays>,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<SqsResponseBody>, SqsError>> + Send>>;

impl Queues {
    pub(super) fn new(sqs: RustackSqs) -> Self {
        let sqs = Arc::new(sqs);
        Self { handler: RustackSqsHandler::new(Arc::clone(&sqs)), sqs, delays: Arc::default() }
    }

    /// Sends one message or a batch.
    fn send(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let Some(request) = without_groups(&body) else {
            return self.handler.handle_operation(operation, body);
        };
        match SendMessageBatchInput::deserialize(&request) {
            Ok(batch) if can_hold(&batch) => self.hold(batch),
            _ => self.handler.handle_operation(operation, request.to_string().into()),
        }
    }

    fn hold(&self, batch: SendMessageBatchInput) -> ResponseFuture {
        let (sqs, delays) = (Arc::clone(&self.sqs), Arc::clone(&self.delays));
        Box::pin(async move {
            // Fails if there is no such queue.
            let queue = GetQueueAttributesInput { queue_url: batch.queue_url.clone(), attribute_names: Vec::new() };
            sqs.get_queue_attributes(queue).await?;
            response(&delays.hold(&sqs, batch))
        })
    }

    /// Counts first what is held. So a message that becomes due meanwhile is counted twice rather than not at all.
    fn attributes(&self, asked: GetQueueAttributesInput) -> ResponseFuture {
        let (sqs, held) = (Arc::clone(&self.sqs), self.delays.count(&asked.queue_url));
        Box::pin(async move {
            let mut output = sqs.get_queue_attributes(asked).await?;
            if let Some(delayed) = output.attributes.get_mut(DELAYED_COUNT) {
                *delayed = (delayed.parse().unwrap_or(0) + held).to_string();
            }
            response(&output)
        })
    }
}

impl SqsHandler for Queues {
    fn handle_operation(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        match operation {
            SqsOperation::SendMessage | SqsOperation::SendMessageBatch => return self.send(operation, body),
            SqsOperation::GetQueueAttributes => {
                if let Ok(asked) = serde_json::from_slice(&body) {
                    return self.attributes(asked);
                }
            }
            // Both name the queue in the same way.
            SqsOperation::PurgeQueue | SqsOperation::DeleteQueue => {
                if let Ok(PurgeQueueInput { queue_url }) = serde_json::from_slice(&body) {
                    self.delays.drop_all(&queue_url);
                }
            }
            _ => {}
        }
        self.handler.handle_operation(operation, body)
    }
}

/// Returns the request without message groups. Returns `None` if the queue is FIFO, where groups matter, or if the
/// body is not a request to send messages.
fn without_groups(body: &[u8]) -> Option<Value> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    if request["QueueUrl"].as_str()?.rsplit_once('.').is_some_and(|(_, end)| end == "fifo") {
        return None;
    }
    request.as_object_mut()?.remove(GROUP_FIELD);
    for entry in request["Entries"].as_array_mut().into_iter().flatten() {
        entry.as_object_mut()?.remove(GROUP_FIELD);
    }
    Some(request)
}

fn response(output: &impl Serialize) -> Result<Response<SqsResponseBody>, SqsError> {
    let json = serde_json::to_vec(output).map_err(|error| SqsError::internal_error(error.to_string()))?;
    Ok(json_response(json, &uuid::Uuid::new_v4().to_string()))
}
