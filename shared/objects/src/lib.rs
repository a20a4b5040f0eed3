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
use bytes::Bytes;
use futures_util::FutureExt;
use platform::aws::{Environment, Missing, Patience};
use platform::preflight::{ProbeFuture, ResourceKind};
use platform::resources::BASE_BUCKET_VARIABLE;
use platform::service::Service;
use platform::store::{StoreError, causes};

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

    /// Returns the bucket that the environment names, and notes that it is to be checked.
    pub fn from_service(service: &Service<'_>, patience: Patience) -> Result<Self, Missing> {
        let [bucket] = service.variables([BASE_BUCKET_VARIABLE])?;
        let client = client(service.environment(), patience);
        service.check(ResourceKind::Bucket, &bucket, probe(&client, &bucket));
        Ok(Self::new(client, bucket, patience))
    }

    /// Reads an object. Returns `None` if there is none.
    ///
    /// S3 says that an object is absent only to those who have the permission `s3:ListBucket`. Without it, an absent
    /// object is an error.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.within_limit(self.read(key)).await
    }

    /// Puts an object, in place of any other with this key.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.client.put_object().bucket(&self.bucket).key(key).body(bytes.into());
        self.within_limit(async { put.send().await.map(drop).map_err(StoreError::from) }).await
    }

    async fn read(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let found = match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Err(error) if is_absent(&error) => return Ok(None),
            found => found?,
        };
        let body = found.body.collect().await.map_err(|error| StoreError::Unavailable(causes(&error)))?;
        Ok(Some(body.into_bytes()))
    }

    /// Ends a call that takes too long. The SDK's own limit ends with the head of the response, before its body.
    async fn within_limit<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let late = |_| StoreError::Unavailable(format!("no whole answer within {:?}", self.limit));
        tokio::time::timeout(self.limit, call).await.map_err(late)?
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
