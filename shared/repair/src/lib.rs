//! Brings the tables of public data and of accounts back in line, after a restore that holds some but not all rows of
//! recent transactions. Readers may go on meanwhile. Writers must be stopped.
//!
//! It may be repeated at any time, also after a crash in the middle: each step leaves tables that readers read right,
//! and what is in line already stays as it is.

mod error;
mod mode;
mod orders;
mod progress;
mod streams;
mod versions;

use std::sync::Arc;

use accounts::Accounts;
use market::{Log, Market};
use objects::Objects;
use types::clock::Clock;
use types::records::{PublicItem, PublicListing};

pub use error::RepairError;
pub use mode::Mode;
pub use orders::OrdersReport;
pub use progress::Progress;
pub use streams::{StreamFindings, StreamReport};
pub use versions::{NotVersioned, Versioned};

/// A repair of both tables.
pub struct Repair {
    pub market: Market,
    /// The bucket of the bases.
    pub objects: Objects,
    pub accounts: Accounts,
    pub clock: Arc<dyn Clock>,
    pub mode: Mode,
}

/// What a repair found, and what it did about that.
#[derive(Debug)]
pub struct RepairReport {
    pub streams: Vec<StreamReport>,
    pub orders: OrdersReport,
}

impl Repair {
    /// Repairs the streams, and then the orders of every user. Tells `progress` how far it is.
    pub async fn run(&self, progress: &dyn Fn(Progress)) -> Result<RepairReport, RepairError> {
        let catalog = Log::<PublicItem>::new(self.market.clone());
        let listings = Log::<PublicListing>::new(self.market.clone());
        let streams = vec![
            Box::pin(streams::repair(&catalog, &self.objects, &self.clock, self.mode, progress)).await?,
            Box::pin(streams::repair(&listings, &self.objects, &self.clock, self.mode, progress)).await?,
        ];
        let orders = Box::pin(orders::repair(&self.accounts, self.clock.now(), self.mode.dry_run, progress)).await?;
        Ok(RepairReport { streams, orders })
    }
}

impl RepairReport {
    /// Returns whether everything was in line.
    pub fn is_in_line(&self) -> bool {
        self.streams.iter().all(|stream| stream.found.is_in_line()) && self.orders.is_in_line()
    }
}
