//! AWS SDK clients for a function. Credentials, region and endpoint come from its environment variables, which are
//! all that Lambda gives it.

mod endpoint;
mod headers;
mod identity;
mod transport;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::config::endpoint::ResolveEndpoint;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Region, SharedHttpClient, SharedInterceptor, StalledStreamProtectionConfig,
};
use aws_types::SdkConfig;
use thiserror::Error;

use endpoint::EndpointCache;
use headers::LeanHeaders;
use identity::StaticIdentityCache;
pub use transport::client_over;

/// Looks up an environment variable by its name.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Required environment variables that are not set. The error names all of them at once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("environment variables not set: {}", .0.join(", "))]
pub struct Missing(pub Vec<&'static str>);

/// The credentials, region and endpoints that AWS clients are made with.
#[derive(Clone)]
pub struct Environment {
    region: String,
    credentials: Credentials,
    endpoint: Option<String>,
    dynamodb_endpoint: Option<String>,
    /// The HTTP client that all AWS clients share. It is expensive to make, so the first AWS client makes it, once.
    http: Arc<OnceLock<SharedHttpClient>>,
    interceptors: Vec<SharedInterceptor>,
}

/// How long a caller waits for a call to AWS, retries included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// A client is waiting for an answer: at most three attempts within 2.5 seconds.
    Request,
    /// A bulk job: at most ten attempts within a minute.
    Bulk,
}

impl Environment {
    /// Reads the standard environment variables of the AWS SDKs.
    pub fn read(lookup: Lookup<'_>) -> Result<Self, Missing> {
        let [region, id, secret] = required(lookup, ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])?;
        let credentials = Credentials::new(id, secret, lookup("AWS_SESSION_TOKEN"), None, "environment");
        Ok(Self {
            region,
            credentials,
            endpoint: lookup("AWS_ENDPOINT_URL"),
            dynamodb_endpoint: lookup("AWS_ENDPOINT_URL_DYNAMODB"),
            http: Arc::default(),
            interceptors: Vec::new(),
        })
    }

    /// Reaches AWS by this HTTP client instead of a new one. It has a pool of connections of its own.
    #[must_use]
    pub fn reached_by(self, http: SharedHttpClient) -> Self {
        Self { http: Arc::new(OnceLock::from(http)), ..self }
    }

    /// Adds an interceptor, which sees every call of the clients that are made from now on.
    #[must_use]
    pub fn watched_by(mut self, interceptor: SharedInterceptor) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    pub fn dynamodb(&self, patience: Patience) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(&self.config(patience));
        if let Some(endpoint) = &self.dynamodb_endpoint {
            config.set_endpoint_url(Some(endpoint.clone()));
        }
        config.set_endpoint_resolver(Some(EndpointCache::default().into_shared_resolver()));
        config.set_interceptors(self.interceptors());
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// Returns the interceptors that see every call of a client. They are for one client, because they keep its user
    /// agent.
    pub fn interceptors(&self) -> impl IntoIterator<Item = SharedInterceptor> {
        let mut interceptors = self.interceptors.clone();
        interceptors.push(SharedInterceptor::permanent(LeanHeaders::default()));
        interceptors
    }

    /// Returns the configuration that a client of any AWS service is made from.
    pub fn config(&self, patience: Patience) -> SdkConfig {
        let mut config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(SharedCredentialsProvider::new(self.credentials.clone()))
            .identity_cache(StaticIdentityCache::default())
            .http_client(self.http.get_or_init(transport::client).clone())
            // The time-outs already limit every call, and this protection would have to watch each body as well.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(patience.timeouts())
            .retry_config(patience.retries());
        config.set_endpoint_url(self.endpoint.clone());
        config.build()
    }
}

/// Reads environment variables that must be set and must not be empty.
pub fn required<const N: usize>(lookup: Lookup<'_>, names: [&'static str; N]) -> Result<[String; N], Missing> {
    let missing: Vec<_> = names.into_iter().filter(|name| lookup(name).is_none_or(|v| v.is_empty())).collect();
    if missing.is_empty() { Ok(names.map(|name| lookup(name).unwrap_or_default())) } else { Err(Missing(missing)) }
}

impl Patience {
    /// Returns the time limits for connecting, for each attempt and for the whole call.
    pub fn timeouts(self) -> TimeoutConfig {
        let attempt = match self {
            Self::Request => Duration::from_secs(1),
            Self::Bulk => Duration::from_secs(10),
        };
        TimeoutConfig::builder()
            .connect_timeout(attempt)
            .operation_attempt_timeout(attempt)
            .operation_timeout(self.limit())
            .build()
    }

    /// Returns the time limit for a whole call, retries included.
    pub const fn limit(self) -> Duration {
        match self {
            Self::Request => Duration::from_millis(2_500),
            Self::Bulk => Duration::from_mins(1),
        }
    }

    /// Returns the number of attempts and the pauses between them. Throttling and lost connections are retried.
    pub fn retries(self) -> RetryConfig {
        let (attempts, first, longest) = match self {
            Self::Request => (3, 25, 200),
            Self::Bulk => (10, 50, 5_000),
        };
        RetryConfig::standard()
            .with_max_attempts(attempts)
            .with_initial_backoff(Duration::from_millis(first))
            .with_max_backoff(Duration::from_millis(longest))
    }
}

#[cfg(test)]
mod tests;
