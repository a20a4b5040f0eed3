//! What belongs to one user: orders and balance. One door to the accounts table.

mod balance;
mod orders;
mod page;
mod summary;
mod table;

use aws_sdk_dynamodb::Client;

pub use orders::OrderOutcome;
pub use page::OrderPages;

use crate::store::{Item, StoreError};

/// The accounts table.
#[derive(Clone)]
pub struct Accounts {
    client: Client,
    table: String,
}

impl Accounts {
    /// The accounts table.
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    async fn get(&self, key: Item) -> Result<Option<Item>, StoreError> {
        let request = self.client.get_item().table_name(&self.table).set_key(Some(key)).consistent_read(true);
        Ok(request.send().await?.item)
    }
}
