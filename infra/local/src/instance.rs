//! One instance of every function behind one gateway, and of the function that is invoked directly.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use account::Account;
use api::{GatewayEvent, Handler, Response};
use common::aws::Missing;
use common::runtime::{Error, Service, Worker};
use futures_util::future::join_all;
use webhooks::guard::{LOOPBACK_VARIABLE, Policy};

use crate::gateway::{self, Functions};
use crate::host::{Host, log_failed_warm_up};
use crate::inbox::{Inbox, StoredSecrets};
use crate::server::Server;

/// Running functions. They stop when this is dropped.
pub struct Instance {
    /// The base URL of the API.
    pub base_url: String,
    _server: Server,
}

impl Instance {
    /// Builds every function, warms each up, and serves them.
    pub async fn start(listen: SocketAddr, host: &Host) -> io::Result<Self> {
        let listener = Server::bind(listen).await?;
        let functions = functions(host).map_err(io::Error::other)?;
        let secrets = host.unobserved(StoredSecrets::new).map_err(io::Error::other)?;
        let inbox = Inbox::new(Arc::new(secrets), host.clock());
        let warm_ups = join_all(functions.values().map(|handler| handler.warm_up()));
        let (warmed, ()) = tokio::join!(warm_ups, host.log_problems());
        warmed.into_iter().for_each(log_failed_warm_up);
        for (&name, handler) in &functions {
            host.invocations().offer(name, Routed(Arc::clone(handler)));
        }
        // What it uses is checked together with what the workers use.
        host.invocations().offer("account", account(host).map_err(io::Error::other)?);
        let server = gateway::serve(listener, functions, host.switches().clone(), inbox)?;
        Ok(Self { base_url: server.url(), _server: server })
    }
}

/// A function of the API, invoked without the gateway.
struct Routed(Arc<dyn Handler>);

impl Worker for Routed {
    type Event = GatewayEvent;
    type Response = Response;

    async fn work(&self, event: GatewayEvent) -> Result<Response, Error> {
        Ok(self.0.handle(event).await)
    }
}

fn functions(host: &Host) -> Result<Functions, Missing> {
    Ok(Functions::from([
        function(host, "me", me::api)?,
        function(host, "catalog", catalog::api)?,
        function(host, "item", item::api)?,
        function(host, "prices", prices::api)?,
        function(host, "marketplaces", marketplaces::api)?,
        function(host, "listings", listings::api)?,
        function(host, "orders", orders::api)?,
        function(host, "balance", balance::api)?,
        function(host, "openapi", openapi::api)?,
    ]))
}

/// Builds the account's settings. Endpoints may be on this machine if the variables say so, as `marketctl` reads them.
fn account(host: &Host) -> Result<Account, Missing> {
    let allows_loopback = host.unobserved(|service| Ok(service.lambda_variable(LOOPBACK_VARIABLE)))?;
    let policy = if allows_loopback.as_deref() == Some("1") { Policy::with_loopback() } else { Policy::public() };
    host.function("account", |service| account::worker(service, policy))
}

fn function<H: Handler + 'static>(
    host: &Host,
    name: &'static str,
    build: impl FnOnce(&Service<'_>) -> Result<H, Missing>,
) -> Result<(&'static str, Arc<dyn Handler>), Missing> {
    Ok((name, Arc::new(host.function(name, build)?)))
}
