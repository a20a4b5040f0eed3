//! One instance of every function behind one gateway.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use shared::aws::Missing;
use shared::clock::Clock;
use shared::http::Handler;
use shared::service::Service;

use crate::environment::Variables;
use crate::gateway::{self, Functions};
use crate::inbox::{Inbox, StoredSecrets};
use crate::server::Server;

/// Running functions; they end when this is dropped.
pub struct Instance {
    /// Where the API is served.
    pub base_url: String,
    _server: Server,
}

impl Instance {
    /// Builds every function from the variables, warms each up, and serves them.
    pub async fn start(listen: SocketAddr, variables: &Variables, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let listener = Server::bind(listen).await?;
        let lookup = |name: &str| variables.get(name);
        let service = Service::new(&lookup, Arc::clone(&clock)).map_err(io::Error::other)?;
        let functions = functions(&service).map_err(io::Error::other)?;
        let inbox = Inbox::new(Arc::new(StoredSecrets::new(&service).map_err(io::Error::other)?), clock);
        join_all(functions.values().map(|handler| handler.warm_up())).await;
        let server = gateway::serve(listener, functions, inbox)?;
        Ok(Self { base_url: server.url(), _server: server })
    }
}

fn functions(service: &Service<'_>) -> Result<Functions, Missing> {
    fn arc(handler: impl Handler + 'static) -> Arc<dyn Handler> {
        Arc::new(handler)
    }
    Ok(Functions::from([
        ("me", arc(me::api(service)?)),
        ("catalog", arc(catalog::api(service)?)),
        ("item", arc(item::api(service)?)),
        ("prices", arc(prices::api(service)?)),
        ("marketplaces", arc(marketplaces::api(service)?)),
        ("listings", arc(listings::api(service)?)),
        ("orders", arc(orders::api(service)?)),
        ("balance", arc(balance::api(service)?)),
        ("openapi", arc(openapi::api(service)?)),
    ]))
}
