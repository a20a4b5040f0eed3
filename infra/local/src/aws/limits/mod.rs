//! Limits of the emulated DynamoDB and S3: throughput by partition key, by table and by prefix, conflicts and isolation
//! of transactions, and latencies. Refusals have the form that SDKs know from AWS, and are in a report.
//!
//! It also has point-in-time recovery and backups, which the embedded DynamoDB lacks.
//!
//! Two things differ from AWS. `BatchWriteItem` and `PartiQL` are not limited, because nothing here uses them. And each
//! partition key has its throughput to itself, while AWS puts many keys on one partition.

mod answer;
mod batches;
mod bucket;
mod config;
mod console;
mod embedded;
mod flights;
mod isolation;
mod latency;
mod limiter;
pub(super) mod object_answers;
mod object_report;
pub(super) mod objects;
mod reads;
mod recovery;
mod report;
mod single;
mod store;
mod tables;
mod transactions;
mod usage;
mod writes;

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;

pub use config::{Limits, ObjectLimits, Rate, Throughput};
pub use console::print_refusals;
pub use latency::Latency;
pub use limiter::Limiter;
pub use object_report::ObjectReport;
pub use recovery::Recovery;
pub use report::{Reason, Refusal, Report};
pub(super) use store::Store;
pub use usage::{Access, Resource, Units};

use super::call::{operation, plain};
use crate::server::Body;
use answer::Answer;
use store::Call;

/// Answers a DynamoDB call, under the limits if there are any. As with AWS, a call that has arrived goes on even if its client does not
/// wait for the answer.
pub(super) async fn serve(store: Arc<Store>, request: Request<Incoming>) -> Response<Body> {
    let operation = operation(&request).to_owned();
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let answering = tokio::spawn(async move {
        let is_read = store.needs_more(&operation);
        let request = if is_read { serde_json::from_slice(&body).ok() } else { None };
        match request {
            Some(request) => answered(&store, Call { operation, head, request }).await,
            None => store.send_bytes(head, body).await,
        }
    });
    match answering.await {
        Ok(answer) => answer.into_response(),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn answered(store: &Store, call: Call) -> Answer {
    if Recovery::serves(&call.operation) {
        store.limiter.recovery().answer(&store.tables, &call.operation, &call.request).await
    } else if store.limiter.is_on() {
        limited(store, call).await
    } else {
        store.send(call).await
    }
}

async fn limited(store: &Store, call: Call) -> Answer {
    match call.operation.as_str() {
        "GetItem" | "Query" | "Scan" => reads::read(store, call).await,
        "BatchGetItem" => batches::get(store, call).await,
        "PutItem" | "UpdateItem" | "DeleteItem" => single::write(store, call).await,
        "TransactWriteItems" => transactions::write(store, call).await,
        "TransactGetItems" => transactions::read(store, call).await,
        _ => store.send(call).await,
    }
}
