//! Answers to DynamoDB calls, and refusals in the form that SDKs understand.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::report::{Reason, Refusal};
use super::usage::Access;
use crate::server::Body;

/// The words with which DynamoDB refuses on-demand tables.
const THROTTLED: &str = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically \
                         scaling your table or index so please try again shortly.";

const CONFLICT: &str = "Transaction is ongoing for the item";
const IN_PROGRESS: &str = "The transaction with the given request token is already in progress.";

/// An answer whose body is at hand.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Answer {
    /// Refuses a call.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        let limit = match refusal.reason {
            Reason::Partition => "KeyRangeThroughputExceeded",
            Reason::Table => "AccountLimitExceeded",
            Reason::Conflict => return Self::error("TransactionConflictException", json!({"message": CONFLICT})),
            Reason::InProgress => {
                return Self::error("TransactionInProgressException", json!({"Message": IN_PROGRESS}));
            }
        };
        let reason = json!({"reason": throttling_reason(refusal, limit), "resource": arn(refusal)});
        Self::error("ThrottlingException", json!({"message": THROTTLED, "throttlingReasons": [reason]}))
    }

    /// Refuses a call that consists of one part.
    pub(super) fn of_single(refusals: &[Option<Refusal>]) -> Self {
        match refusals.iter().flatten().next() {
            Some(refusal) => Self::refused(refusal),
            None => Self::error("InternalServerError", json!({"message": "refused without a reason"})),
        }
    }

    /// Refuses a transaction. Says for each of its items whether that item is the reason.
    pub(super) fn cancelled(refusals: &[Option<Refusal>]) -> Self {
        let (codes, reasons): (Vec<&str>, Vec<Value>) = refusals.iter().map(|refusal| reason(refusal.as_ref())).unzip();
        let message = format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
            codes.join(", ")
        );
        Self::error("TransactionCanceledException", json!({"Message": message, "CancellationReasons": reasons}))
    }

    pub(super) fn json(status: StatusCode, body: &Value) -> Self {
        Self { status, body: body.to_string().into() }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Full::from(self.body).map_err(|never| match never {}).boxed());
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        response
    }

    pub(super) fn error(name: &str, mut body: Value) -> Self {
        body["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
        Self::json(StatusCode::BAD_REQUEST, &body)
    }
}

/// Returns why an item made its transaction fail: a code, and the code with its message.
fn reason(refusal: Option<&Refusal>) -> (&'static str, Value) {
    let (code, message) = match refusal.map(|refusal| refusal.reason) {
        None => return ("None", json!({"Code": "None"})),
        Some(Reason::Partition | Reason::Table) => ("ThrottlingError", THROTTLED),
        Some(Reason::Conflict | Reason::InProgress) => ("TransactionConflict", CONFLICT),
    };
    (code, json!({"Code": code, "Message": message}))
}

fn throttling_reason(refusal: &Refusal, limit: &str) -> String {
    let kind = if refusal.resource.index.is_some() { "Index" } else { "Table" };
    let access = match refusal.access {
        Access::Read => "Read",
        Access::Write => "Write",
    };
    format!("{kind}{access}{limit}")
}

fn arn(refusal: &Refusal) -> String {
    let table = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{}", refusal.resource.table);
    match &refusal.resource.index {
        Some(index) => format!("{table}/index/{index}"),
        None => table,
    }
}
