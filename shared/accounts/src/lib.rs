//! The accounts table, which holds what belongs to one user: orders and balance. No other code of the service reads or
//! writes it.

mod balance;
mod order_writes;
mod orders;
mod page;
mod summary;
mod table;

use aws_sdk_dynamodb::Client;

pub use orders::OrderOutcome;
pub use page::OrderPages;

use platform::aws::{Missing, Patience};
use platform::preflight::Probe;
use platform::resources::Table;
use platform::service::Service;

/// The accounts table.
#[derive(Clone)]
pub struct Accounts {
    client: Client,
    table: String,
}

impl Accounts {
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    /// Returns the accounts table that the environment names, to be checked by `probe`.
    pub fn from_service(service: &Service<'_>, probe: Probe) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Accounts, Patience::Request, probe)?;
        Ok(Self::new(client, table))
    }
}
