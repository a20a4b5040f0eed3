//! S3 in memory, addressed by paths. With a folder, each object is kept in a file as well.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use common::resources::OBJECT_KEEP;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use rustack_s3_core::{RustackS3, S3Config};
use rustack_s3_http::codec::is_aws_chunked;
use rustack_s3_http::response::error_to_response;
use rustack_s3_http::{FromS3Request, IntoS3Response, RoutingContext, S3ResponseBody, S3Router};
use rustack_s3_model::input::{CreateBucketInput, DeleteObjectInput, PutObjectInput};
use rustack_s3_model::{S3Error, S3ErrorCode, S3Operation, StreamingBlob};
use tokio::time::sleep;

use super::files::Files;
use super::limits::{Access, Limiter};
use crate::server::{Body, full};

/// The answer of S3 to requests that come too fast.
const SLOW_DOWN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>local</RequestId></Error>"#;

type Answer = Result<Response<S3ResponseBody>, S3Error>;

/// The buckets and their objects.
pub(super) struct Buckets {
    store: RustackS3,
    router: S3Router,
    folder: Option<Files>,
    limiter: Arc<Limiter>,
}

/// A call whose operation is known.
struct S3Call {
    parts: Parts,
    context: RoutingContext,
    body: Bytes,
}

impl Buckets {
    /// Opens the buckets that a folder has. Without a folder there are none at first.
    pub(super) async fn open(data: Option<&Path>, limiter: Arc<Limiter>) -> io::Result<Self> {
        // The store would put larger objects into temporary files.
        let config = S3Config { s3_max_memory_object_size: usize::MAX, ..S3Config::default() };
        let router = S3Router::new(config.s3_domain.clone(), false);
        let folder = data.map(|data| Files(data.join("objects")));
        let buckets = Self { store: RustackS3::new(config), router, folder, limiter };
        buckets.load().await?;
        Ok(buckets)
    }

    async fn load(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let failed = |error: S3Error| io::Error::other(error.to_string());
        for bucket in folder.folders()? {
            let create = CreateBucketInput { bucket: bucket.clone(), ..CreateBucketInput::default() };
            self.store.handle_create_bucket(create).await.map_err(failed)?;
            for (key, content) in folder.read(&bucket, Some(OBJECT_KEEP))? {
                let (bucket, body) = (bucket.clone(), Some(StreamingBlob::new(content)));
                let put = PutObjectInput { bucket, key, body, ..PutObjectInput::default() };
                self.store.handle_put_object(put).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Answers one call, under the limits if there are any. These do not apply to calls that are about a bucket itself.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let call = match self.read(request).await {
            Ok(call) => call,
            Err(error) => return whole(Err(error)).await.map(full),
        };
        let access = match call.context.operation {
            S3Operation::GetObject | S3Operation::HeadObject | S3Operation::ListObjectsV2 => Some(Access::Read),
            S3Operation::PutObject | S3Operation::DeleteObject => Some(Access::Write),
            _ => None,
        };
        let Some(access) = access.filter(|_| self.limiter.is_on()) else {
            return whole(Box::pin(self.perform(&call)).await).await.map(full);
        };
        let prefix = call.context.key.as_deref().and_then(|key| key.split('/').next()).unwrap_or_default();
        sleep(self.limiter.begin_object()).await;
        if !self.limiter.take_object(prefix, access) {
            let mut refusal = Response::new(full(SLOW_DOWN));
            *refusal.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            refusal.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            return refusal;
        }
        let answer = whole(Box::pin(self.perform(&call)).await).await;
        if answer.status().is_success() {
            let bytes = if access == Access::Read { answer.body().len() } else { call.body.len() };
            sleep(self.limiter.move_bytes(access, bytes)).await;
        }
        answer.map(full)
    }

    async fn read(&self, request: Request<Incoming>) -> Result<S3Call, S3Error> {
        let context = self.router.resolve(&request)?;
        let (parts, body) = request.into_parts();
        if is_aws_chunked(&parts) {
            return Err(S3Error::not_implemented("aws-chunked"));
        }
        let cut_short = |error: hyper::Error| S3Error::with_message(S3ErrorCode::InvalidRequest, error.to_string());
        let body = body.collect().await.map_err(cut_short)?.to_bytes();
        Ok(S3Call { parts, context, body })
    }

    async fn perform(&self, call: &S3Call) -> Answer {
        let store = &self.store;
        match call.context.operation {
            S3Operation::CreateBucket => call.by(|input| store.handle_create_bucket(input)).await,
            S3Operation::HeadBucket => call.by(|input| store.handle_head_bucket(input)).await,
            S3Operation::ListBuckets => call.by(|input| store.handle_list_buckets(input)).await,
            S3Operation::DeleteBucket => {
                store.handle_delete_bucket(call.input()?).await?;
                let mut deleted = Response::new(S3ResponseBody::empty());
                *deleted.status_mut() = StatusCode::NO_CONTENT;
                Ok(deleted)
            }
            S3Operation::ListObjectsV2 => call.by(|input| store.handle_list_objects_v2(input)).await,
            S3Operation::HeadObject => call.by(|input| store.handle_head_object(input)).await,
            S3Operation::GetObject => call.by(|input| store.handle_get_object(input)).await,
            S3Operation::PutObject => {
                let input: PutObjectInput = call.input()?;
                let (bucket, key) = (input.bucket.clone(), input.key.clone());
                if self.folder.is_some() && !Files::takes(&key) {
                    return Err(S3Error::with_message(S3ErrorCode::KeyTooLongError, "no file can have this name"));
                }
                let output = store.handle_put_object(input).await?;
                if let Some(folder) = &self.folder {
                    folder.put(&bucket, &key, &call.body).map_err(not_kept)?;
                }
                output.into_s3_response()
            }
            S3Operation::DeleteObject => {
                let input: DeleteObjectInput = call.input()?;
                let (bucket, key) = (input.bucket.clone(), input.key.clone());
                let output = store.handle_delete_object(input).await?;
                if let Some(folder) = &self.folder {
                    folder.remove(&bucket, &key).map_err(not_kept)?;
                }
                output.into_s3_response()
            }
            operation => Err(S3Error::not_implemented(operation.as_str())),
        }
    }
}

impl S3Call {
    /// Parses what the operation is given.
    fn input<I: FromS3Request>(&self) -> Result<I, S3Error> {
        let RoutingContext { bucket, key, query_params, .. } = &self.context;
        I::from_s3_request(&self.parts, bucket.as_deref(), key.as_deref(), query_params, self.body.clone())
    }

    /// Answers with the output of the operation that `handle` performs.
    async fn by<I, O, F>(&self, handle: impl FnOnce(I) -> F) -> Answer
    where
        I: FromS3Request,
        O: IntoS3Response,
        F: Future<Output = Result<O, S3Error>>,
    {
        handle(self.input()?).await?.into_s3_response()
    }
}

/// Returns an answer whose body is at hand. The body is in memory already, so this does not wait for it.
async fn whole(answer: Answer) -> Response<Bytes> {
    let (head, body) = answer.unwrap_or_else(|error| error_to_response(&error, "local")).into_parts();
    Response::from_parts(head, body.collect().await.map(Collected::to_bytes).unwrap_or_default())
}

fn not_kept(error: io::Error) -> S3Error {
    S3Error::internal_error(error.to_string()).with_source(error)
}
