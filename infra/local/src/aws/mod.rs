//! The AWS side: DynamoDB, SQS and Secrets Manager over real HTTP on one port.

mod fair;
mod forward;
mod queues;
mod relay;
pub mod setup;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dynoxide::Database;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use forward::Forwarder;
pub use relay::Relay;

use crate::server::{Body, Server};
use queues::Emulated;

/// DynamoDB removes expired items within days; a minute is close enough.
const SWEEP: Duration = Duration::from_mins(1);

/// A running AWS side; it ends when it is dropped.
pub struct AwsSide {
    /// Where SDKs find it.
    pub endpoint_url: String,
    /// Where DynamoDB alone is, without the way round by the common address, which costs computing time and
    /// serves delays.
    pub dynamodb_url: String,
    forwarder: Arc<Forwarder>,
    database: Database,
    _server: Server,
    tasks: Vec<JoinHandle<()>>,
}

impl AwsSide {
    /// Starts on an address, keeping tables in a file of `data` or in memory.
    pub async fn start(listen: SocketAddr, data: Option<&Path>) -> io::Result<Self> {
        let database = open(data)?;
        let inner = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let upstream = format!("http://{}", inner.local_addr()?);
        let tasks = vec![tokio::spawn(dynoxide::server::serve_on(inner, database.clone()))];
        let forwarder = Arc::new(Forwarder::to(&upstream));
        let listener = Server::bind(listen).await?;
        let emulated = Arc::new(Emulated::at(listener.local_addr()?));
        let router = Arc::clone(&forwarder);
        let server = Server::start(listener, move |request| {
            let (forwarder, emulated) = (Arc::clone(&router), Arc::clone(&emulated));
            async move { route(request, &forwarder, &emulated).await }
        })?;
        Ok(Self { endpoint_url: server.url(), dynamodb_url: upstream, forwarder, database, _server: server, tasks })
    }

    /// Removes items once they have expired by the machine's own clock, from now on. Where clocks are set, as
    /// in tests, nothing may: an item's time to live is told by those clocks.
    pub fn expire_items(&mut self) {
        self.tasks.push(tokio::spawn(sweep_expired(self.database.clone())));
    }

    /// Delays every DynamoDB call from now on, so that round trips show.
    pub fn delay_store(&self, by: Duration) {
        self.forwarder.delay(by);
    }
}

impl Drop for AwsSide {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn open(data: Option<&Path>) -> io::Result<Database> {
    let opened = match data {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            Database::new(&folder.join("dynamodb.sqlite3").to_string_lossy())
        }
        None => Database::memory(),
    };
    opened.map_err(|error| io::Error::other(format!("cannot open the tables: {error}")))
}

/// Real DynamoDB removes expired items by itself; the embedded one has to be asked.
async fn sweep_expired(database: Database) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        let database = database.clone();
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "cannot remove expired items");
        }
    }
}

/// How the targets of DynamoDB calls begin.
const DYNAMODB: &str = "DynamoDB";

/// The service and operation that every SDK call names.
fn target(request: &Request<Incoming>) -> &str {
    request.headers().get("x-amz-target").and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn route(request: Request<Incoming>, forwarder: &Forwarder, emulated: &Emulated) -> Response<Body> {
    let target = target(&request);
    if target.starts_with(DYNAMODB) {
        return forwarder.forward(request).await;
    }
    if target.starts_with("AmazonSQS.") {
        return emulated.queues(request).await;
    }
    if target.starts_with("secretsmanager.") {
        return emulated.secrets(request).await;
    }
    let text = "This endpoint serves DynamoDB, SQS and Secrets Manager to AWS SDKs (JSON protocols).\n";
    plain(StatusCode::NOT_FOUND, text)
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::from(text.to_owned()).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
