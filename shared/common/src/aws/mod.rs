//! AWS SDK clients for a function. Credentials, region and endpoint come from its environment variables, which are
//! all that Lambda gives it.

mod sdk;
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
use sdk::{EndpointCache, LeanHeaders, StaticIdentityCache};
use thiserror::Error;
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
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::SystemTime;

    use aws_credential_types::provider::{ProvideCredentials, future};
    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::config::endpoint::Params;
    use aws_sdk_dynamodb::types::AttributeValue;
    use aws_smithy_runtime_api::client::http::{
        HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
    };
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    const HOST_OF_REGION: &str = "https://dynamodb.us-east-1.amazonaws.com/";

    /// A request as it was sent.
    #[derive(Debug)]
    struct Sent {
        uri: String,
        headers: BTreeMap<String, String>,
    }

    /// Keeps every request, and answers it with an empty object.
    #[derive(Clone, Debug, Default)]
    struct Recorder(Arc<Mutex<Vec<Sent>>>);

    impl Recorder {
        fn environment(&self) -> Environment {
            let lookup = |name: &str| match name {
                "AWS_REGION" => Some("us-east-1".to_owned()),
                "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
                _ => None,
            };
            let recorder = self.clone();
            let http = http_client_fn(move |_, _| SharedHttpConnector::new(recorder.clone()));
            Environment::read(&lookup).unwrap().reached_by(http)
        }

        fn take(&self) -> Vec<Sent> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }

        fn take_uris(&self) -> Vec<String> {
            self.take().into_iter().map(|sent| sent.uri).collect()
        }
    }

    impl HttpConnector for Recorder {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            let headers = request.headers().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            self.0.lock().unwrap().push(Sent { uri: request.uri().to_owned(), headers });
            HttpConnectorFuture::ready(Ok(HttpResponse::new(
                StatusCode::try_from(200_u16).unwrap(),
                SdkBody::from("{}"),
            )))
        }
    }

    /// Counts how often its credentials are asked for.
    #[derive(Debug)]
    struct CountingProvider {
        asked: Arc<AtomicU64>,
        expiry: Option<SystemTime>,
    }

    impl ProvideCredentials for CountingProvider {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            self.asked.fetch_add(1, Ordering::SeqCst);
            future::ProvideCredentials::ready(Ok(Credentials::new("id", "secret", None, self.expiry, "test")))
        }
    }

    async fn get(client: &Client, table: &str) {
        client.get_item().table_name(table).key("pk", AttributeValue::S("any".to_owned())).send().await.unwrap();
    }

    #[tokio::test]
    async fn only_the_first_call_tells_more_about_the_client_than_its_user_agent() {
        let recorder = Recorder::default();
        let client = recorder.environment().dynamodb(Patience::Request);
        for _ in 0..3 {
            get(&client, "keys").await;
        }
        let calls = recorder.take();
        let others = ["x-amz-user-agent", "amz-sdk-invocation-id", "amz-sdk-request"];
        let others_of = |call: &Sent| others.iter().filter(|name| call.headers.contains_key(**name)).count();
        assert_eq!(calls.iter().map(others_of).collect::<Vec<_>>(), [3, 0, 0]);
        let user_agent = &calls[0].headers["user-agent"];
        assert!(user_agent.starts_with("aws-sdk-rust/") && user_agent.contains("api/dynamodb/"), "{user_agent}");
        for call in &calls {
            assert_eq!(&call.headers["user-agent"], user_agent);
            assert!(call.headers["authorization"].starts_with("AWS4-HMAC-SHA256"), "{call:?}");
        }
    }

    #[tokio::test]
    async fn tables_by_name_share_an_endpoint_and_an_arn_has_the_one_of_its_account() {
        let recorder = Recorder::default();
        let client = recorder.environment().dynamodb(Patience::Request);
        for table in ["keys", "market", "arn:aws:dynamodb:us-east-1:222222222222:table/keys", "keys"] {
            get(&client, table).await;
        }
        let of_account = "https://222222222222.ddb.us-east-1.amazonaws.com/";
        assert_eq!(recorder.take_uris(), [HOST_OF_REGION, HOST_OF_REGION, of_account, HOST_OF_REGION]);
    }

    #[tokio::test]
    async fn a_client_made_from_anothers_configuration_has_its_own_endpoint() {
        let recorder = Recorder::default();
        let client = recorder.environment().dynamodb(Patience::Request);
        get(&client, "keys").await;
        let elsewhere = client.config().to_builder().endpoint_url("http://localhost:8000").build();
        get(&Client::from_conf(elsewhere), "keys").await;
        get(&client, "keys").await;
        assert_eq!(recorder.take_uris(), [HOST_OF_REGION, "http://localhost:8000/", HOST_OF_REGION]);
    }

    /// If the SDK's rules ask for anything new, the cache of endpoints has to compare it.
    #[test]
    fn the_rules_ask_for_nothing_that_the_cache_of_endpoints_ignores() {
        let params = format!("{:?}", Params::builder().build().unwrap());
        let fields = params.trim_start_matches("Params { ").trim_end_matches(" }").split(", ");
        let names: Vec<&str> = fields.map(|field| field.split(':').next().unwrap()).collect();
        let compared = ["region", "use_dual_stack", "use_fips", "endpoint", "account_id", "account_id_endpoint_mode"];
        assert_eq!(names, [&compared[..], &["resource_arn", "resource_arn_list", "is_search_operation"]].concat());
    }

    #[tokio::test]
    async fn credentials_are_asked_for_once_unless_they_expire() {
        async fn asked_in_three_calls(expiry: Option<SystemTime>) -> u64 {
            let (recorder, asked) = (Recorder::default(), Arc::default());
            let provider = SharedCredentialsProvider::new(CountingProvider { asked: Arc::clone(&asked), expiry });
            let config = recorder.environment().config(Patience::Request).into_builder().credentials_provider(provider);
            let client = Client::new(&config.build());
            for _ in 0..3 {
                get(&client, "keys").await;
            }
            asked.load(Ordering::SeqCst)
        }

        assert_eq!(asked_in_three_calls(None).await, 1);
        let far_away = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        assert_eq!(asked_in_three_calls(Some(far_away)).await, 3);
    }
}
