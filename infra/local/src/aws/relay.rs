//! A relay that delays the DynamoDB calls to a foreign AWS endpoint, for an instance without an AWS side of its own.

use std::convert::identity;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

use crate::server::{Body, Server, header, plain};

/// A running relay. It stops when it is dropped.
pub struct Relay {
    /// The endpoint URL for SDKs.
    pub endpoint_url: String,
    _server: Server,
}

impl Relay {
    /// Starts on a free loopback port.
    pub async fn start(upstream: &str, delay: Duration) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let upstream = upstream.trim_end_matches('/').to_owned();
        let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let server = Server::start_for_this_machine(listener, identity, move |request: Request<Incoming>| {
            let (client, upstream) = (client.clone(), upstream.clone());
            async move {
                if header(&request, "x-amz-target").starts_with("DynamoDB") {
                    tokio::time::sleep(delay).await;
                }
                forward(&client, &upstream, request).await
            }
        })?;
        Ok(Self { endpoint_url: server.url(), _server: server })
    }
}

async fn forward(
    client: &Client<HttpConnector, Incoming>,
    upstream: &str,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match format!("{upstream}{path}").parse::<Uri>() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
    }
    match client.request(request).await {
        Ok(response) => response.map(|body| body.map_err(io::Error::other).boxed()),
        Err(error) => plain(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}
