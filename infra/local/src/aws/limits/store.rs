//! The store behind the limits.

use std::sync::Arc;

use bytes::Bytes;
use dynoxide::Database;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use serde_json::Value;

use super::answer::Answer;
use super::embedded;
use super::limiter::Limiter;
use super::recovery::Recovery;
use super::tables::Tables;
use crate::aws::call::operation;
use crate::aws::forward::Forwarder;

/// What the limits stand in front of: the embedded DynamoDB, behind its own server or called directly.
pub(in crate::aws) struct Store {
    pub(super) limiter: Arc<Limiter>,
    pub(super) tables: Tables,
    forwarder: Option<Arc<Forwarder>>,
}

/// A call that was read.
pub(super) struct Call {
    pub(super) operation: String,
    pub(super) head: Parts,
    pub(super) request: Value,
}

impl Store {
    /// Without a forwarder to its server, the database is called directly.
    pub(in crate::aws) fn new(limiter: Arc<Limiter>, database: Database, forwarder: Option<Arc<Forwarder>>) -> Self {
        Self { limiter, tables: Tables(database), forwarder }
    }

    /// Returns whether a call of this operation needs more than the embedded DynamoDB.
    pub(in crate::aws) fn needs_more(&self, operation: &str) -> bool {
        self.limiter.is_on() || self.limiter.recovery().is_used() || Recovery::serves(operation)
    }

    /// Lets the store answer a call. If it is a write to a table with a journal, the journal gets it.
    pub(super) async fn send(&self, call: Call) -> Answer {
        let recovery = self.limiter.recovery();
        let pending = recovery.begin(&self.tables, &call.operation, &call.request).await;
        let Call { operation, head, request } = call;
        let answer = self.send_bytes(head, request.to_string().into()).await;
        if let Some(pending) = pending.filter(|_| answer.status.is_success()) {
            pending.keep();
        }
        recovery.complete(&operation, request["TableName"].as_str(), answer)
    }

    /// Lets the store answer a call with this body.
    pub(super) async fn send_bytes(&self, mut head: Parts, body: Bytes) -> Answer {
        let Some(forwarder) = &self.forwarder else {
            let request = Request::from_parts(head, body);
            return embedded::answer(&self.tables.0, operation(&request), request.body());
        };
        head.headers.remove(CONTENT_LENGTH);
        let request = Request::from_parts(head, Either::Right(Full::from(body)));
        let (head, body) = forwarder.send(request).await.into_parts();
        match body.collect().await {
            Ok(body) => Answer { status: head.status, body: body.to_bytes() },
            Err(error) => Answer { status: StatusCode::BAD_GATEWAY, body: error.to_string().into() },
        }
    }
}
