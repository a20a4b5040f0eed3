//! Hands each call to the service that it names.

use std::sync::Arc;

use dynoxide::Database;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::call::{DYNAMODB_TARGET_PREFIX, operation, plain, signed_for, target};
use super::forward::Forwarder;
use super::limits::{self, Limiter, Store};
use super::services::EmulatedServices;
use super::sts;
use crate::server::Body;

/// What answers the calls.
pub(super) struct Router {
    /// Leads to the server of the embedded DynamoDB, if it has one.
    forwarder: Option<Arc<Forwarder>>,
    store: Arc<Store>,
    services: EmulatedServices,
}

impl Router {
    /// Routes to these services. Without a forwarder to its server, the database is called directly.
    pub(super) fn new(
        database: Database,
        forwarder: Option<Arc<Forwarder>>,
        limiter: Arc<Limiter>,
        services: EmulatedServices,
    ) -> Self {
        let store = Arc::new(Store::new(limiter, database, forwarder.clone()));
        Self { forwarder, store, services }
    }

    pub(super) async fn route(&self, request: Request<Incoming>) -> Response<Body> {
        let target = target(&request);
        if target.starts_with(DYNAMODB_TARGET_PREFIX) {
            return match &self.forwarder {
                Some(forwarder) if !self.store.needs_more(operation(&request)) => forwarder.forward(request).await,
                _ => limits::serve(Arc::clone(&self.store), request).await,
            };
        }
        if target.starts_with("AmazonSQS.") {
            return self.services.queues(request).await;
        }
        if target.starts_with("secretsmanager.") {
            return self.services.secrets(request).await;
        }
        if target.starts_with("AWSEvents.") {
            return self.services.rules(request).await;
        }
        match signed_for(&request) {
            "lambda" => return self.services.functions(request).await,
            "s3" => return self.services.buckets(request).await,
            "sts" => return sts::answer(request).await,
            _ => {}
        }
        let text = "This endpoint serves DynamoDB, SQS, Secrets Manager and S3 to AWS SDKs.\n";
        plain(StatusCode::NOT_FOUND, text)
    }
}
