//! SQS, Secrets Manager and S3, and what stops, starts and invokes the functions.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::Service;
use rustack_secretsmanager_core::config::SecretsManagerConfig;
use rustack_secretsmanager_core::handler::RustackSecretsManagerHandler;
use rustack_secretsmanager_core::provider::RustackSecretsManager;
use rustack_secretsmanager_http::service::{SecretsManagerHttpConfig, SecretsManagerHttpService};
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::service::{SqsHttpConfig, SqsHttpService};

use super::control;
use super::limits::Limiter;
use super::queues::Queues;
use super::s3::Buckets;
use crate::invocations::Invocations;
use crate::server::Body;
use crate::switches::Switches;

/// The emulated services.
pub(super) struct EmulatedServices {
    queues: SqsHttpService<Queues>,
    secrets: SecretsManagerHttpService<RustackSecretsManagerHandler>,
    buckets: Buckets,
    pub(super) switches: Switches,
    pub(super) invocations: Invocations,
}

impl EmulatedServices {
    /// Creates the services. Their queue URLs point to `address`. Objects are kept in the folder `data`; the rest is in
    /// memory.
    pub(super) async fn open(address: SocketAddr, data: Option<&Path>, limiter: Arc<Limiter>) -> io::Result<Self> {
        let config = SqsConfig { host: address.ip().to_string(), port: address.port(), ..SqsConfig::default() };
        let queues = Queues::new(RustackSqs::new(config));
        let secrets = RustackSecretsManager::new(SecretsManagerConfig::default());
        let secrets = RustackSecretsManagerHandler::new(Arc::new(secrets));
        Ok(Self {
            queues: SqsHttpService::new(Arc::new(queues), SqsHttpConfig::default()),
            secrets: SecretsManagerHttpService::new(Arc::new(secrets), SecretsManagerHttpConfig::default()),
            buckets: Buckets::open(data, limiter).await?,
            switches: Switches::default(),
            invocations: Invocations::default(),
        })
    }

    pub(super) async fn queues(&self, request: Request<Incoming>) -> Response<Body> {
        boxed(self.queues.call(request).await)
    }

    pub(super) async fn secrets(&self, request: Request<Incoming>) -> Response<Body> {
        boxed(self.secrets.call(request).await)
    }

    pub(super) async fn buckets(&self, request: Request<Incoming>) -> Response<Body> {
        self.buckets.answer(request).await
    }

    pub(super) async fn functions(&self, request: Request<Incoming>) -> Response<Body> {
        control::lambda(&self.switches, &self.invocations, request).await
    }

    pub(super) async fn rules(&self, request: Request<Incoming>) -> Response<Body> {
        control::events(&self.switches, request).await
    }
}

fn boxed<B>(response: Result<Response<B>, Infallible>) -> Response<Body>
where
    B: hyper::body::Body<Data = bytes::Bytes> + Send + Sync + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Ok(response) = response;
    response.map(|body| body.map_err(io::Error::other).boxed())
}
