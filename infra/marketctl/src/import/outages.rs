//! Checks, during an import, that its tables still answer.
//!
//! A writer repeats a call many times before it gives up and moves on to the next one. If the store is down, it
//! would take hours to get through a file in this way.

use std::time::Duration;

use inventory::check_table;
use platform::preflight::{Problem, ResourceKind};
use platform::resources::Table;

use crate::remedy::with_remedy;
use crate::session::Session;

/// The pause before each check. A chunk that is written sooner than this causes no check at all.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Notices when the tables that an import writes to are out of order.
pub(super) struct OutageMonitor {
    dynamodb: aws_sdk_dynamodb::Client,
    tables: [String; 2],
}

impl OutageMonitor {
    pub(super) fn new(session: &Session) -> Self {
        let tables = [Table::Market, Table::Accounts].map(|table| session.resources.table(table));
        Self { dynamodb: session.dynamodb.clone(), tables }
    }

    /// Returns an error if nothing can be written to one of the tables.
    pub(super) async fn check_tables(&self) -> Result<(), String> {
        for name in &self.tables {
            match check_table(&self.dynamodb, name, &[]).await {
                Err(problem @ (Problem::Missing | Problem::Refused(_) | Problem::Unreachable(_))) => {
                    return Err(with_remedy(&problem, ResourceKind::Table, name));
                }
                // The table is being changed, or we may not describe it. Writing to it may still succeed.
                Err(Problem::NotActive(_) | Problem::NoIndex(_) | Problem::Content(_) | Problem::Denied(_))
                | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Waits until the tables cannot be written to, and returns the reason.
    pub(super) async fn wait_for_outage(&self) -> String {
        let mut failed_before = false;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            // A single failed check proves little: throttled writes may have used up the client's retries.
            match self.check_tables().await {
                Err(reason) if failed_before => return reason,
                checked => failed_before = checked.is_err(),
            }
        }
    }
}
