//! The bucket of a stack. S3 takes bursts of reads that one table could not: a new table serves 12,000 read units a
//! second, a prefix of a bucket 5,500 objects a second, of any size.

use std::future::Future;
use std::time::Duration;

pub use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::config::{Builder, RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_types::SdkConfig;
use bytes::{Bytes, BytesMut};
use common::aws::{Environment, Missing, Patience};
use common::preflight::{ProbeFuture, ResourceKind};
use common::resources::BASE_BUCKET_VARIABLE;
use common::runtime::Service;
use common::store::{StoreError, causes};
use futures_util::FutureExt;

/// At most this much memory is reserved before the body of an object comes.
const MAX_RESERVED_BYTES: usize = 8 * 1_024 * 1_024;
/// A key that no object has.
const ABSENT_KEY: &str = "nothing";

/// A bucket. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Objects {
    client: Client,
    bucket: String,
    limit: Duration,
}

impl Objects {
    /// Makes a client of the bucket with this name. `client` must have been made with the same patience.
    pub fn new(client: Client, bucket: String, patience: Patience) -> Self {
        Self { client, bucket, limit: patience.limit() }
    }

    /// Returns the bucket that the environment names, and notes that it is to be checked. The memory of the function is
    /// published, because it holds what it reads from the bucket.
    pub fn from_service(service: &Service<'_>, patience: Patience) -> Result<Self, Missing> {
        let [bucket] = service.variables([BASE_BUCKET_VARIABLE])?;
        let client = client(service.environment(), patience);
        let (probing, probed) = (client.clone(), bucket.clone());
        service.meter.publish_memory();
        service.check(ResourceKind::Bucket, &bucket, move || probe(&probing, &probed));
        Ok(Self::new(client, bucket, patience))
    }

    /// Reads an object. Returns `None` if there is none.
    ///
    /// The patience is for the head of the response, and then for each piece of the body. On a slow network, many reads
    /// at the same time take long, but all of them get on.
    ///
    /// S3 says that an object is absent only to those who have the permission `s3:ListBucket`. Without it, an absent
    /// object is an error.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let get = self.client.get_object().bucket(&self.bucket).key(key);
        let found = Box::pin(self.within_limit(async {
            match get.send().await {
                Err(error) if is_absent(&error) => Ok(None),
                found => Ok(Some(found?)),
            }
        }));
        let Some(mut found) = found.await? else { return Ok(None) };
        let expected_bytes = usize::try_from(found.content_length.unwrap_or_default()).unwrap_or_default();
        let mut object = BytesMut::with_capacity(expected_bytes.min(MAX_RESERVED_BYTES));
        let broken = |error| StoreError::Unavailable(causes(&error));
        while let Some(piece) = self.within_limit(async { found.body.next().await.transpose().map_err(broken) }).await?
        {
            object.extend_from_slice(&piece);
        }
        Ok(Some(object.freeze()))
    }

    /// Puts an object, in place of any other with this key.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.client.put_object().bucket(&self.bucket).key(key).body(bytes.into());
        Box::pin(self.within_limit(async { put.send().await.map(drop).map_err(StoreError::from) })).await
    }

    /// Ends a step that takes too long. The SDK's own limit ends with the head of the response, before its body.
    async fn within_limit<T>(&self, step: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let late = |_| StoreError::Unavailable(format!("no answer within {:?}", self.limit));
        tokio::time::timeout(self.limit, step).await.map_err(late)?
    }
}

/// Makes a client of S3.
pub fn client(environment: &Environment, patience: Patience) -> Client {
    let mut config = config(&environment.config(patience));
    config.set_interceptors(environment.interceptors());
    Client::from_conf(config.build())
}

/// Returns what a client of S3 is made from, with the settings of all AWS clients.
///
/// The SDK's checksums are off. The signature of a write covers the SHA-256 of its content, and whoever reads an object
/// knows its hash.
pub fn config(shared: &SdkConfig) -> Builder {
    Builder::from(shared)
        // Only AWS has a host name for each bucket.
        .force_path_style(shared.endpoint_url().is_some())
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
}

/// Checks a bucket by reading an object that it does not have. This needs the permissions that a read needs anyway:
/// `s3:GetObject`, and `s3:ListBucket`.
pub fn probe(client: &Client, bucket: &str) -> ProbeFuture {
    let get = client.get_object().bucket(bucket).key(ABSENT_KEY);
    async move {
        match get.send().await {
            Err(error) if is_absent(&error) => Ok(()),
            found => Ok(found.map(drop)?),
        }
    }
    .boxed()
}

fn is_absent(error: &SdkError<GetObjectError, HttpResponse>) -> bool {
    error.as_service_error().is_some_and(GetObjectError::is_no_such_key)
}
