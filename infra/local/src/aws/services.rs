//! The services behind the endpoint, and which of them each call is for.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dynoxide::Database;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use hyper::service::Service;
use rustack_secretsmanager_core::config::SecretsManagerConfig;
use rustack_secretsmanager_core::handler::RustackSecretsManagerHandler;
use rustack_secretsmanager_core::provider::RustackSecretsManager;
use rustack_secretsmanager_http::service::{SecretsManagerHttpConfig, SecretsManagerHttpService};
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::service::{SqsHttpConfig, SqsHttpService};

use super::dynamodb::DynamoDb;
use super::faults::{Fate, FaultInjector};
use super::lambda;
use super::limits::Limiter;
use super::queues::Queues;
use super::s3::Buckets;
use crate::environment::ACCOUNT_ID;
use crate::invocations::Invocations;
use crate::server::{Body, header, plain};

/// Everything that answers calls.
pub(super) struct Services {
    pub(super) dynamodb: Arc<DynamoDb>,
    pub(super) limiter: Arc<Limiter>,
    pub(super) faults: Arc<FaultInjector>,
    pub(super) invocations: Invocations,
    queues: SqsHttpService<Queues>,
    secrets: SecretsManagerHttpService<RustackSecretsManagerHandler>,
    buckets: Buckets,
}

impl Services {
    /// Creates the services. The URLs of queues point to `address`. Objects and messages are kept in the folder
    /// `data`; secrets are in memory.
    pub(super) async fn open(address: SocketAddr, database: Database, data: Option<&Path>) -> io::Result<Self> {
        let (limiter, faults) = (Arc::new(Limiter::default()), Arc::new(FaultInjector::default()));
        let config = SqsConfig { host: address.ip().to_string(), port: address.port(), ..SqsConfig::default() };
        let queues = Queues::open(RustackSqs::new(config), data, Arc::clone(&faults))?;
        let secrets = RustackSecretsManager::new(SecretsManagerConfig::default());
        let secrets = RustackSecretsManagerHandler::new(Arc::new(secrets));
        Ok(Self {
            dynamodb: Arc::new(DynamoDb::new(database, Arc::clone(&limiter))),
            invocations: Invocations::default(),
            queues: SqsHttpService::new(Arc::new(queues), SqsHttpConfig::default()),
            secrets: SecretsManagerHttpService::new(Arc::new(secrets), SecretsManagerHttpConfig::default()),
            buckets: Buckets::open(data, Arc::clone(&limiter)).await?,
            limiter,
            faults,
        })
    }

    /// Answers one call. Every call to the AWS side comes here.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let fate = self.faults.fate(header(&request, "x-amz-target"));
        let response = match fate {
            Fate::Throttled | Fate::Failed => return fate.response(),
            Fate::Answered | Fate::AnswerLost => self.own_answer(request).await,
        };
        if fate == Fate::AnswerLost { fate.response() } else { response }
    }

    async fn own_answer(&self, request: Request<Incoming>) -> Response<Body> {
        let target = header(&request, "x-amz-target");
        let (service, operation) = target.split_once('.').unwrap_or_default();
        let operation = operation.to_owned();
        match service {
            "AmazonSQS" => return boxed(self.queues.call(request).await),
            "secretsmanager" => return boxed(self.secrets.call(request).await),
            _ if service.starts_with("DynamoDB") => return Arc::clone(&self.dynamodb).answer(operation, request).await,
            _ => {}
        }
        match signed_for(&request) {
            "lambda" => lambda::answer(&self.invocations, request).await,
            "s3" => self.buckets.answer(request).await,
            "sts" => identity(request).await,
            _ => {
                let text = "This endpoint serves DynamoDB, SQS, Secrets Manager and S3 to AWS SDKs.\n";
                plain(StatusCode::NOT_FOUND, text)
            }
        }
    }
}

/// Returns the service that a call is signed for. Lambda, S3 and STS name their service nowhere else.
fn signed_for<B>(request: &Request<B>) -> &str {
    // The scope of a signature is `Credential=KEY/DATE/REGION/SERVICE/aws4_request`.
    let scope = header(request, "authorization").split_once("Credential=").map_or("", |(_, scope)| scope);
    scope.split('/').nth(3).unwrap_or_default()
}

/// Answers `GetCallerIdentity`, with which tools ask STS for the account that they use.
async fn identity(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut parameters = body.split(|byte| *byte == b'&');
    if !parameters.any(|parameter| parameter == b"Action=GetCallerIdentity") {
        return plain(StatusCode::BAD_REQUEST, "Of STS, this endpoint only has GetCallerIdentity.\n");
    }
    let identity = format!(
        r#"<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::{ACCOUNT_ID}:root</Arn><UserId>{ACCOUNT_ID}</UserId><Account>{ACCOUNT_ID}</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"#
    );
    plain(StatusCode::OK, &identity)
}

fn boxed<B>(response: Result<Response<B>, Infallible>) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let Ok(response) = response;
    response.map(|body| body.map_err(io::Error::other).boxed())
}
