//! The accounts table, which holds what belongs to one user: orders and balance. No other code of the service reads or
//! writes it.

mod balance;
mod marking;
mod marks;
mod memory;
mod order_writes;
mod orders;
mod page;
mod place;
mod repair;
mod summary;
mod table;

use aws_sdk_dynamodb::Client;

pub use orders::OrderOutcome;
pub use page::OrderPages;
pub use repair::{OrderAuthority, OrderFindings, OrdersPage};

use common::aws::{Missing, Patience};
use common::preflight::Probe;
use common::resources::Table;
use common::runtime::Service;

/// A month with fewer orders than this has no marks, and its blocks may hold this many.
const MIN_BLOCK_ORDERS: u64 = 128;

/// The accounts table.
#[derive(Clone)]
pub struct Accounts {
    client: Client,
    table: String,
    block_orders: u64,
}

impl Accounts {
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table, block_orders: MIN_BLOCK_ORDERS }
    }

    /// Sets how many orders a block of a month may hold, so that tests see many blocks. With `u64::MAX` no marks are
    /// written.
    #[must_use]
    pub fn with_block_orders(self, block_orders: u64) -> Self {
        Self { block_orders, ..self }
    }

    /// Returns the accounts table that the environment names, to be checked by `probe`.
    pub fn from_service(service: &Service<'_>, probe: Probe) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Accounts, Patience::Request, probe)?;
        Ok(Self::new(client, table))
    }
}
