//! A relay that delays the calls to a foreign AWS endpoint, for an instance without an AWS side of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::Forwarder;
use crate::server::Server;

/// A running relay. It stops when it is dropped.
pub struct Relay {
    /// The endpoint URL for SDKs.
    pub endpoint_url: String,
    _server: Server,
}

impl Relay {
    /// Starts on a free loopback port.
    pub async fn start(upstream: &str, delay: Duration) -> io::Result<Self> {
        let forwarder = Arc::new(Forwarder::new(upstream));
        forwarder.delay(delay);
        let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let server = Server::start(listener, move |request| {
            let forwarder = Arc::clone(&forwarder);
            async move { forwarder.forward(request).await }
        })?;
        Ok(Self { endpoint_url: server.url(), _server: server })
    }
}
