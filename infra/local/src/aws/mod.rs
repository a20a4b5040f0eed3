//! The AWS side: DynamoDB, SQS, Secrets Manager and S3 over real HTTP, on one port or within the process. Of Lambda and
//! EventBridge it has what stops, starts and invokes the functions.

mod call;
mod control;
mod delays;
mod forward;
mod in_memory;
pub mod limits;
mod queues;
mod relay;
mod retry_quota;
mod router;
mod s3;
mod services;
pub mod setup;
mod sts;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dynoxide::Database;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use forward::Forwarder;
pub use in_memory::InMemoryAws;
pub use relay::Relay;

use crate::invocations::Invocations;
use crate::server::Server;
use crate::switches::Switches;
use limits::{Limiter, Recovery};
use router::Router;
use services::EmulatedServices;

/// The time between two removals of expired items. Real DynamoDB takes up to a few days.
const EXPIRY_INTERVAL: Duration = Duration::from_mins(1);

/// A running AWS side. It stops when it is dropped.
pub struct AwsSide {
    /// The endpoint URL for SDKs.
    pub endpoint_url: String,
    /// The endpoint URL of DynamoDB alone. Calls to it save the computing time of the common endpoint. They are never
    /// delayed or limited, and no journal has them.
    pub dynamodb_url: String,
    forwarder: Arc<Forwarder>,
    limiter: Arc<Limiter>,
    database: Database,
    switches: Switches,
    invocations: Invocations,
    _server: Server,
    tasks: Vec<JoinHandle<()>>,
}

impl AwsSide {
    /// Starts on an address. Tables and objects are kept in the folder `data`, or in memory if there is none.
    pub async fn start(listen: SocketAddr, data: Option<&Path>) -> io::Result<Self> {
        let database = open_tables(data)?;
        let inner = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let upstream = format!("http://{}", inner.local_addr()?);
        let tasks = vec![tokio::spawn(dynoxide::server::serve_on(inner, database.clone()))];
        let forwarder = Arc::new(Forwarder::new(&upstream));
        let listener = Server::bind(listen).await?;
        let limiter = Arc::new(Limiter::default());
        let services = EmulatedServices::open(listener.local_addr()?, data, Arc::clone(&limiter)).await?;
        let (switches, invocations) = (services.switches.clone(), services.invocations.clone());
        let upstream_forwarder = Some(Arc::clone(&forwarder));
        let router = Router::new(database.clone(), upstream_forwarder, Arc::clone(&limiter), services);
        let router = Arc::new(router);
        let server = Server::start(listener, move |request| {
            let router = Arc::clone(&router);
            async move { router.route(request).await }
        })?;
        let (endpoint_url, dynamodb_url) = (server.url(), upstream);
        Ok(Self {
            endpoint_url,
            dynamodb_url,
            forwarder,
            limiter,
            database,
            switches,
            invocations,
            _server: server,
            tasks,
        })
    }

    /// From now on, removes items that have expired by the machine's own clock. Do not call this where clocks are set,
    /// as in tests: there, a row's time to live is counted by those clocks.
    pub fn expire_items(&mut self) {
        self.tasks.push(tokio::spawn(remove_expired(self.database.clone())));
    }

    /// Delays every DynamoDB call from now on, which makes round trips visible.
    pub fn delay_store(&self, by: Duration) {
        self.forwarder.delay(by);
    }

    /// What an operator has stopped. Functions obey it if their host was given these switches. Those of another process
    /// do not.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// The functions that Lambda's Invoke finds: those of the latest instance whose host was given these.
    pub fn invocations(&self) -> &Invocations {
        &self.invocations
    }

    /// Point-in-time recovery and backups of DynamoDB. At first no table has them.
    pub fn recovery(&self) -> &Recovery {
        self.limiter.recovery()
    }

    /// The limits of DynamoDB and S3. At first there are none.
    pub fn limits(&self) -> &Arc<Limiter> {
        &self.limiter
    }
}

impl Drop for AwsSide {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Opens the tables that are kept in the folder `data`, or makes empty ones in memory if there is none.
pub fn open_tables(data: Option<&Path>) -> io::Result<Database> {
    let opened = match data {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            Database::new(&folder.join("dynamodb.sqlite3").to_string_lossy())
        }
        None => Database::memory(),
    };
    opened.map_err(|error| io::Error::other(format!("cannot open the tables: {error}")))
}

/// Removes expired items, again and again: the embedded DynamoDB does not do so by itself.
async fn remove_expired(database: Database) {
    let mut ticks = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        ticks.tick().await;
        let database = database.clone();
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "cannot remove expired items");
        }
    }
}
