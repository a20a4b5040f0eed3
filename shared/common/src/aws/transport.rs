//! How functions reach AWS: HTTP/1.1 by hyper, over plain TCP or over TLS by rustls with ring. The web's root
//! certificates are compiled in.
//!
//! The SDK's own transport has two drawbacks. Before the first call it reads and parses every certificate of the
//! system, which is most of the start-up time of a function that makes one call. And it brings HTTP/2, a tenth of a
//! function's binary, although neither DynamoDB nor SQS speaks it.
//!
//! The SDK limits the time of each attempt. Connecting is part of an attempt.

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, connect};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::clock::{Clock, Moment, SystemClock};

/// The longest time for connecting, shared among a host's addresses of one family. It is shorter than an attempt, so
/// an address that does not answer does not use up the whole attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(800);
/// A connection that has been idle for longer, by either clock, is not used again. The other side closes idle connections,
/// and firewalls forget them. Finding that out costs an attempt, or a second if nobody says so.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Makes an HTTP client with its own pool of connections. All AWS clients that are given it share the pool.
pub(super) fn client() -> SharedHttpClient {
    client_trusting(roots())
}

fn client_trusting(roots: RootCertStore) -> SharedHttpClient {
    let mut tcp = connect::HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    client_over(HttpsConnector::from((tcp, Arc::new(tls(roots)))))
}

/// Sends the calls of all AWS clients over one pool of connections. A pool that was not used for too long is left for a
/// new one.
struct AwsTransport<C> {
    connector: C,
    clock: Arc<dyn Clock>,
    pool: Mutex<Pool<C>>,
}

/// A pool, and when it was used last. Its own timer stands still while the function is frozen.
struct Pool<C> {
    client: Client<C, SdkBody>,
    used: Moment,
}

/// Makes such a client whose connections come from `connector`, wherever they lead.
pub fn client_over<C>(connector: C) -> SharedHttpClient
where
    C: connect::Connect + Clone + Debug + Send + Sync + 'static,
{
    client_with(connector, Arc::new(SystemClock::new()))
}

fn client_with<C>(connector: C, clock: Arc<dyn Clock>) -> SharedHttpClient
where
    C: connect::Connect + Clone + Debug + Send + Sync + 'static,
{
    let pool = Mutex::new(Pool { client: pooled(connector.clone()), used: Moment::now(&*clock) });
    // The SDK asks for a connector before each attempt.
    let transport = SharedHttpConnector::new(AwsTransport { connector, clock, pool });
    http_client_fn(move |_, _| transport.clone())
}

fn pooled<C>(connector: C) -> Client<C, SdkBody>
where
    C: connect::Connect + Clone + Debug + Send + Sync + 'static,
{
    let mut client = Client::builder(TokioExecutor::new());
    client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT).build(connector)
}

fn roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn tls(roots: RootCertStore) -> ClientConfig {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("ring knows TLS 1.2 and 1.3");
    config.with_root_certificates(roots).with_no_client_auth()
}

impl<C> Debug for AwsTransport<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsTransport(…)")
    }
}

impl<C> HttpConnector for AwsTransport<C>
where
    C: connect::Connect + Clone + Debug + Send + Sync + 'static,
{
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let response = {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            if pool.used.age(&*self.clock) >= IDLE_TIMEOUT {
                pool.client = pooled(self.connector.clone());
            }
            pool.used = Moment::now(&*self.clock);
            pool.client.request(request)
        };
        HttpConnectorFuture::new(async move {
            // The SDK retries I/O errors, unless the call has already taken too long.
            let response = response.await.map_err(|error| ConnectorError::io(error.into()))?;
            let response = HttpResponse::try_from(response.map(SdkBody::from_body_1_x));
            response.map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use aws_sdk_dynamodb::config::retry::RetryConfig;
    use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
    use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::clock::ManualClock;
    use crate::store::explain;
    use crate::timestamp::Timestamp;

    /// Starts a DynamoDB that has no tables, with a certificate for `name`. Returns its endpoint and the root certificate
    /// that vouches for it.
    async fn store(name: &str) -> (String, RootCertStore) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let acceptor =
            TlsAcceptor::from(Arc::new(config.with_single_cert(vec![cert.der().clone()], key.into()).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                // A client may drop a connection half made, and must not keep the next one waiting.
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    // The request fits in one TLS record.
                    let _ = stream.read(&mut [0; 16_384]).await.unwrap();
                    let answer =
                        "HTTP/1.1 200 OK\r\ncontent-length: 17\r\nconnection: close\r\n\r\n{\"TableNames\":[]}";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    stream.shutdown().await.unwrap();
                });
            }
        });
        (format!("https://localhost:{port}"), roots)
    }

    /// Lists the tables. On a machine that is busy, a handshake may take longer than a request may in service.
    async fn tables(endpoint: &str, http: SharedHttpClient) -> Result<Vec<String>, String> {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url(endpoint)
            .timeout_config(TimeoutConfig::builder().operation_timeout(Duration::from_mins(1)).build())
            .retry_config(RetryConfig::disabled())
            .http_client(http);
        let listed = aws_sdk_dynamodb::Client::from_conf(config.build()).list_tables().send().await;
        listed.map(|listed| listed.table_names.unwrap_or_default()).map_err(|error| explain(&error))
    }

    #[tokio::test]
    async fn only_a_certificate_of_a_known_authority_for_this_name_is_accepted() {
        let (endpoint, roots) = store("localhost").await;
        assert_eq!(tables(&endpoint, client_trusting(roots)).await, Ok(Vec::new()));
        let unknown = tables(&endpoint, client_trusting(super::roots())).await.unwrap_err();
        assert!(unknown.contains("UnknownIssuer"), "{unknown}");
        let (endpoint, roots) = store("elsewhere.example").await;
        let misnamed = tables(&endpoint, client_trusting(roots)).await.unwrap_err();
        assert!(misnamed.contains("not valid for name"), "{misnamed}");
    }

    /// Starts a DynamoDB that has no tables. It answers the first request of each connection, and then forgets it, as
    /// firewalls do. Returns its endpoint, and how many requests it has swallowed.
    async fn forgetful() -> (String, Arc<AtomicU32>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let swallowed = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&swallowed);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 16_384]).await.unwrap();
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"TableNames\":[]}")
                        .await
                        .unwrap();
                    while stream.read(&mut [0; 16_384]).await.unwrap() > 0 {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        (endpoint, swallowed)
    }

    #[tokio::test]
    async fn a_connection_that_was_idle_while_the_function_was_frozen_is_not_used() {
        let (endpoint, swallowed) = forgetful().await;
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(0)));
        let http = client_with(connect::HttpConnector::new(), clock.clone());
        for _ in 0..3 {
            assert_eq!(tables(&endpoint, http.clone()).await, Ok(Vec::new()));
            // The monotonic clock may stand still.
            clock.set_wall(clock.now().plus_millis(15_000));
        }
        assert_eq!(swallowed.load(Ordering::SeqCst), 0);
    }
}
