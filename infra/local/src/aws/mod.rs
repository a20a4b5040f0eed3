//! The AWS side: DynamoDB, SQS, Secrets Manager and S3 over real HTTP, on one port or within the process. Of Lambda it has
//! what invokes a function, and what tells which tables the functions use.

mod dynamodb;
mod faults;
mod files;
mod in_memory;
mod journal;
mod lambda;
pub mod limits;
mod queues;
mod relay;
mod s3;
mod services;
pub mod setup;

use std::convert::identity;
use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dynoxide::Database;

pub use faults::{FaultInjector, Faults, MAX_LATE};
pub use in_memory::InMemoryAws;
pub use relay::Relay;

use crate::invocations::Invocations;
use crate::server::{BackgroundTask, Server};
use limits::Limiter;
use services::Services;

/// The time between two removals of expired items. Real DynamoDB takes up to a few days.
const EXPIRY_INTERVAL: Duration = Duration::from_mins(1);

/// The file of the tables in the folder where they are kept.
const TABLES: &str = "dynamodb.sqlite3";
/// The permissions of that folder, and those that others have of a folder.
const PRIVATE: u32 = 0o700;
const OF_OTHERS: u32 = 0o077;

/// A running AWS side. It stops when it is dropped.
pub struct AwsSide {
    /// The endpoint URL for SDKs.
    pub endpoint_url: String,
    services: Arc<Services>,
    database: Database,
    _server: Server,
}

impl AwsSide {
    /// Starts on an address. Tables, objects and messages are kept in the folder `data`, or in memory if there is none.
    pub async fn start(listen: SocketAddr, data: Option<&Path>) -> io::Result<Self> {
        let database = open_tables(data)?;
        let listener = Server::bind(listen).await?;
        let services = Services::open(listener.local_addr()?, database.clone(), data).await?;
        let services = Arc::new(services);
        let answering = Arc::clone(&services);
        let server = Server::start_for_this_machine(listener, identity, move |request| {
            let services = Arc::clone(&answering);
            async move { services.answer(request).await }
        })?;
        Ok(Self { endpoint_url: server.url(), services, database, _server: server })
    }

    /// Removes items that have expired by the machine's own clock, until the task is dropped. Do not call this where
    /// clocks are set, as in tests: there, a row's time to live is counted by those clocks.
    pub fn expire_items(&self) -> BackgroundTask {
        BackgroundTask::start(remove_expired(self.database.clone()))
    }

    /// Delays every DynamoDB call from now on, which makes round trips visible.
    pub fn delay_store(&self, by: Duration) {
        self.services.dynamodb.delay(by);
    }

    /// The functions that Lambda's Invoke finds: those of the latest instance whose host was given these.
    pub fn invocations(&self) -> &Invocations {
        &self.services.invocations
    }

    /// The limits of DynamoDB and S3. At first there are none.
    pub fn limits(&self) -> &Arc<Limiter> {
        &self.services.limiter
    }
}

/// Opens the tables that are kept in the folder `data`, or makes empty ones in memory if there is none.
fn open_tables(data: Option<&Path>) -> io::Result<Database> {
    let opened = match data {
        Some(folder) => {
            private_folder(folder)?;
            Database::new(&folder.join(TABLES).to_string_lossy())
        }
        None => Database::memory(),
    };
    opened.map_err(|error| io::Error::other(format!("cannot open the tables: {error}")))
}

/// Makes a folder that other users of the machine cannot look into, also of one that is there. If others can look into it
/// and it has something else in it, it is not ours to close.
fn private_folder(folder: &Path) -> io::Result<()> {
    make_private(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).recursive(true).create(folder)?;
    let mut permissions = folder.metadata()?.permissions();
    if permissions.mode() & OF_OTHERS == 0 {
        return Ok(());
    }
    if !folder.join(TABLES).exists() && folder.read_dir()?.next().is_some() {
        return Err(io::Error::other(
            "others can read it, and it has other things in it: give an empty or a new folder",
        ));
    }
    permissions.set_mode(PRIVATE);
    std::fs::set_permissions(folder, permissions)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ours_is_made_private_and_no_other_is() {
        let parent = tempfile::tempdir().unwrap();
        for (name, file, is_taken) in [("new", None, true), ("ours", Some(TABLES), true), ("other", Some("a"), false)] {
            let folder = parent.path().join(name);
            DirBuilder::new().mode(0o755).create(&folder).unwrap();
            if let Some(file) = file {
                std::fs::write(folder.join(file), "").unwrap();
            }
            assert_eq!(private_folder(&folder).is_ok(), is_taken, "{name}");
            let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if is_taken { PRIVATE } else { 0o755 }, "{name}");
        }
        private_folder(&parent.path().join("a/b")).unwrap();
    }
}
