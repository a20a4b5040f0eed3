//! S3 in memory, addressed by paths. With a folder, each object is kept in a file as well.

mod folder;

use std::future::{Future, ready};
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;
use rustack_s3_core::{RustackS3, S3Config};
use rustack_s3_http::codec::is_aws_chunked;
use rustack_s3_http::response::error_to_response;
use rustack_s3_http::{FromS3Request, IntoS3Response, RoutingContext, S3ResponseBody, S3Router};
use rustack_s3_model::input::{CreateBucketInput, DeleteObjectInput, PutObjectInput};
use rustack_s3_model::{S3Error, S3ErrorCode, S3Operation, StreamingBlob};

use super::limits::object_answers;
use super::limits::objects::ObjectRequest;
use super::limits::{Access, Limiter};
use crate::server::Body;
use folder::ObjectFolder;

type Answer = Result<Response<S3ResponseBody>, S3Error>;

/// The buckets and their objects.
pub(super) struct Buckets {
    store: RustackS3,
    router: S3Router,
    folder: Option<ObjectFolder>,
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
        let folder = data.map(ObjectFolder::new);
        let buckets = Self { store: RustackS3::new(config), router, folder, limiter };
        buckets.load().await?;
        Ok(buckets)
    }

    async fn load(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let failed = |error: S3Error| io::Error::other(error.to_string());
        for bucket in folder.buckets()? {
            let create = CreateBucketInput { bucket: bucket.clone(), ..CreateBucketInput::default() };
            self.store.handle_create_bucket(create).await.map_err(failed)?;
            for (key, content) in folder.objects(&bucket)? {
                let (bucket, body) = (bucket.clone(), Some(StreamingBlob::new(content)));
                let put = PutObjectInput { bucket, key, body, ..PutObjectInput::default() };
                self.store.handle_put_object(put).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Answers one call, under the limits if there are any.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answer = match self.read(request).await {
            Ok(call) => match call.limited().filter(|_| self.limiter.is_on()) {
                Some(limited) => {
                    object_answers::answer(&self.limiter, &limited, whole(Box::pin(self.perform(&call)))).await
                }
                None => whole(Box::pin(self.perform(&call))).await,
            },
            Err(error) => whole(ready(Err(error))).await,
        };
        answer.map(|body| Full::new(body).map_err(|never| match never {}).boxed())
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
            S3Operation::PutObject => self.put(call).await,
            S3Operation::DeleteObject => self.delete(call).await,
            operation => Err(S3Error::not_implemented(operation.as_str())),
        }
    }

    async fn put(&self, call: &S3Call) -> Answer {
        let input: PutObjectInput = call.input()?;
        let (bucket, key) = (input.bucket.clone(), input.key.clone());
        let output = self.store.handle_put_object(input).await?;
        if let Some(folder) = &self.folder {
            folder.put(&bucket, &key, &call.body).map_err(not_kept)?;
        }
        output.into_s3_response()
    }

    async fn delete(&self, call: &S3Call) -> Answer {
        let input: DeleteObjectInput = call.input()?;
        if let Some(folder) = &self.folder {
            folder.remove(&input.bucket, &input.key).map_err(not_kept)?;
        }
        self.store.handle_delete_object(input).await?.into_s3_response()
    }
}

impl S3Call {
    /// Returns what the limits need to know. They do not apply to calls that are about a bucket itself.
    fn limited(&self) -> Option<ObjectRequest<'_>> {
        let access = match self.context.operation {
            S3Operation::GetObject | S3Operation::HeadObject | S3Operation::ListObjectsV2 => Access::Read,
            S3Operation::PutObject | S3Operation::DeleteObject => Access::Write,
            _ => return None,
        };
        let prefix = self.context.key.as_deref().and_then(|key| key.split('/').next()).unwrap_or_default();
        Some(ObjectRequest { prefix, access, bytes: self.body.len() })
    }

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
async fn whole(answered: impl Future<Output = Answer>) -> Response<Bytes> {
    let answered = answered.await;
    let (head, body) = answered.unwrap_or_else(|error| error_to_response(&error, "local")).into_parts();
    Response::from_parts(head, body.collect().await.map(Collected::to_bytes).unwrap_or_default())
}

fn not_kept(error: io::Error) -> S3Error {
    S3Error::internal_error(error.to_string()).with_source(error)
}
