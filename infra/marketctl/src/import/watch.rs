//! Whether the tables that an import writes to still answer.
//!
//! A writer tries a call many times before it gives up on it, and then goes on to the next one. With a
//! store that is away altogether, that would take hours to get through a file.

use std::time::Duration;

use platform::preflight::{Problem, ResourceKind};
use platform::resources::Table;

use crate::check;
use crate::session::Session;

/// A chunk that takes longer than this is reason to look, again and again until it is done.
const PERIOD: Duration = Duration::from_secs(10);

/// Looks at the tables.
pub(super) struct Watch {
    dynamodb: aws_sdk_dynamodb::Client,
    tables: [String; 2],
}

impl Watch {
    pub(super) fn new(session: &Session) -> Self {
        let tables = [Table::Market, Table::Accounts].map(|table| session.resources.table(table));
        Self { dynamodb: session.dynamodb.clone(), tables }
    }

    /// What keeps every message from being written, if anything does.
    pub(super) async fn look(&self) -> Result<(), String> {
        for name in &self.tables {
            match check::table(&self.dynamodb, name, &[]).await {
                Err(problem @ (Problem::Missing | Problem::Refused(_) | Problem::Unreachable(_))) => {
                    return Err(check::sentence(&problem, ResourceKind::Table, name));
                }
                // Being changed, or not to be looked at: it may well be written to.
                Err(Problem::NotActive(_) | Problem::NoIndex(_) | Problem::Content(_) | Problem::Denied(_))
                | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Waits until the tables cannot be written to, and says why; for ever if they can.
    pub(super) async fn outage(&self) -> String {
        let mut failed_before = false;
        loop {
            tokio::time::sleep(PERIOD).await;
            // One failed look may be chance: a throttled writer uses up the client's retries.
            match self.look().await {
                Err(reason) if failed_before => return reason,
                looked => failed_before = looked.is_err(),
            }
        }
    }
}
