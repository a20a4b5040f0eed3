//! The accounts table, which holds what belongs to one user: orders and balance. No other code of the service reads or
//! writes it.

mod hours;
mod order_writes;
mod orders;
mod page;
mod repair;
mod summary;
mod table;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::Client;
use lru::LruCache;

use common::aws::{Missing, Patience};
use common::ids::UserId;
use common::preflight::Probe;
use common::records::PublicBalance;
use common::resources::Table;
use common::runtime::Service;
use common::store::{Attributes, StoreError, get_row, n, put_newer, reset_version, s};

pub use orders::OrderOutcome;
pub use page::OrderPages;
pub use repair::{OrderAuthority, OrdersPage, RepairedOrders};
pub use summary::MAX_RECENT_INSERTS;

/// The most users of whom a process remembers that it has inserted their latest orders.
const MAX_WRITERS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The accounts table.
#[derive(Clone)]
pub struct Accounts {
    client: Client,
    table: String,
    inserts: Arc<Mutex<LruCache<UserId, Insert>>>,
}

/// An insert that shows as a whole, because this process made it and was told that it is done: the summary's era and total
/// after it.
type Insert = (u64, u64);

impl Accounts {
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table, inserts: Arc::new(Mutex::new(LruCache::sparse(MAX_WRITERS))) }
    }

    /// Returns the accounts table that the environment names, to be checked by `probe`.
    pub fn from_service(service: &Service<'_>, probe: Probe) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Accounts, Patience::Request, probe)?;
        Ok(Self::new(client, table))
    }

    /// Reads a user's balance. If none is known, it is six zeros (specification 2.7.3).
    pub async fn balance(&self, user: UserId) -> Result<PublicBalance, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::balance(user)).await? else {
            return Ok(PublicBalance::default());
        };
        table::BALANCE_FORMAT.of_row(&row)?;
        let data = Attributes(&row).text(table::DATA).unwrap_or_default();
        serde_json::from_str(data).map_err(|error| StoreError::corrupt(format!("balance of {user}: {error}")))
    }

    /// Stores a balance, unless the stored one is as new or newer. Returns whether anything changed.
    pub async fn put_balance(&self, user: UserId, balance: PublicBalance, version: u64) -> Result<bool, StoreError> {
        let mut row = table::balance(user);
        row.insert(table::DATA.to_owned(), s(serde_json::to_string(&balance)?));
        put_newer(&self.client, &self.table, row, table::VERSION, n(version)).await
    }

    /// Sets a balance's version to 0, so that a message with any later version applies. Returns the version that it
    /// had, or `None` if no balance of this user is known.
    pub async fn reset_balance_version(&self, user: UserId) -> Result<Option<u64>, StoreError> {
        reset_version(&self.client, &self.table, table::balance(user), table::VERSION).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
