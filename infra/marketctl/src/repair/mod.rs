//! Brings tables back in line, after a restore that holds some but not all rows of recent transactions. Readers may go
//! on meanwhile. Writers must be stopped.
//!
//! It may be repeated at any time, also after a crash in the middle: each step leaves tables that readers read right,
//! and what is in line already stays as it is.

pub(crate) mod command;
mod mode;
pub(crate) mod progress;
mod report;
mod rows;
mod streams;
mod versions;

use std::sync::Arc;

use accounts::Accounts;
use admin::audit::Subject;
use common::clock::Clock;
use common::ids::UserId;
use common::records::{PublicItem, PublicListing};
use common::resources::Table;
use market::{Log, Market};
use replica::objects::Objects;
use webhooks::store::WebhookStore;

pub use mode::{Mode, Progress, RepairError};
pub use rows::{EndpointsReport, Keys, KeysReport, OrdersReport};
pub use streams::{StreamFindings, StreamReport};

/// The command's name in audit lines.
pub(crate) const REPAIR: &str = "repair";

/// A repair of one table or of several.
pub struct Repair {
    /// The table of public data, and the bucket of its bases.
    pub market: Option<(Market, Objects)>,
    pub accounts: Option<Accounts>,
    pub keys: Option<Keys>,
    pub webhooks: Option<WebhookStore>,
    pub clock: Arc<dyn Clock>,
    pub mode: Mode,
}

/// What a repair found, and what it did about that.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// The tables that were looked at. Of the others, nothing below says anything.
    pub examined: Vec<Table>,
    /// The catalog and the listings, or nothing if that table was left alone.
    pub streams: Vec<StreamReport>,
    pub orders: OrdersReport,
    pub keys: KeysReport,
    pub endpoints: EndpointsReport,
}

impl Repair {
    /// Repairs one table after the other. Tells `progress` how far it is.
    pub async fn run(&self, progress: &dyn Fn(Progress)) -> Result<RepairReport, RepairError> {
        let mut report = RepairReport::default();
        self.run_into(&mut report, progress).await?;
        Ok(report)
    }

    /// The same. If it ends early, the report has what was found in the tables before, which a repetition finds no more.
    pub(crate) async fn run_into(
        &self,
        report: &mut RepairReport,
        progress: &dyn Fn(Progress),
    ) -> Result<(), RepairError> {
        if let Some((market, objects)) = &self.market {
            let (catalog, listings) =
                (Log::<PublicItem>::new(market.clone()), Log::<PublicListing>::new(market.clone()));
            let catalog = streams::repair(&catalog, objects, &self.clock, self.mode, progress);
            report.streams.push(Box::pin(catalog).await?);
            let listings = streams::repair(&listings, objects, &self.clock, self.mode, progress);
            report.streams.push(Box::pin(listings).await?);
            report.examined.push(Table::Market);
        }
        if let Some(accounts) = &self.accounts {
            let repair = rows::orders(accounts, self.clock.now(), self.mode, progress);
            report.orders = Box::pin(repair).await?;
            report.examined.push(Table::Accounts);
        }
        if let Some(keys) = &self.keys {
            report.keys = Box::pin(rows::keys(keys, self.mode, progress)).await?;
            report.examined.push(Table::Keys);
        }
        if let Some(webhooks) = &self.webhooks {
            let repair = rows::endpoints(webhooks, &*self.clock, self.mode, progress);
            report.endpoints = Box::pin(repair).await?;
            report.examined.push(Table::Webhooks);
        }
        Ok(())
    }
}

impl RepairReport {
    /// Returns whether everything was in line.
    pub fn is_in_line(&self) -> bool {
        let streams = self.streams.iter().all(|stream| stream.found.is_in_line());
        streams && self.orders.is_in_line() && self.keys.is_in_line() && self.endpoints.is_in_line()
    }

    /// Returns the keys and endpoints that a repair has changed, with their owners.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (Option<UserId>, Subject)> {
        let keys = self.keys.found.iter().map(|((_, key), owner)| (*owner, Subject::from(*key)));
        let endpoints = self.endpoints.found.iter();
        keys.chain(endpoints.map(|found| (Some(found.account_id), Subject::from(found.endpoint_id))))
    }
}
