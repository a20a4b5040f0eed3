//! Looks through the whole table for rows that this release cannot read, and for those that were set aside while an
//! earlier one could not.

use serde::Deserialize;

use super::deliveries::from_row;
use super::endpoints::endpoints;
use super::repair::StoredFinder;
use super::table::{
    ACCOUNT_ID, ACCOUNT_PARTITION, DELIVERY_PARTITION, DRAIN_PARTITION, ENDPOINT_ID, FINDER_PARTITION, NOTICE,
    NOTICE_PARTITION, PK, SET_ASIDE, TOKEN, WAKE_AT,
};
use super::wake_ups::WakeUp;
use super::{StartKey, WebhookStore, table};
use crate::drain::Drain;
use crate::endpoint::UnreadableEndpoint;
use crate::notice::EndpointNotice;
use common::closed_enum;
use common::ids::{EndpointId, UserId};
use common::rows::Unreadable;
use common::store::{Attributes, Row, StoreError, about_rows};
use common::timestamp::Timestamp;

closed_enum! {
    /// What an unreadable row is.
    pub enum RowKind {
        Delivery = "delivery",
        /// An endpoint in its account's row.
        Endpoint = "endpoint",
        /// The row that names the account of an endpoint.
        Finder = "finder",
        Notice = "notice",
        /// The drain of an account.
        Drain = "drain",
        /// This release knows no such rows.
        Unknown = "unknown",
    }
}

/// A row that this release cannot read, or an endpoint in one.
#[derive(Clone, Debug)]
pub struct UnreadableRow {
    pub kind: RowKind,
    pub unreadable: Unreadable,
    /// Whose row it is, as far as that can be read.
    pub account_id: Option<UserId>,
    pub endpoint_id: Option<EndpointId>,
    /// When a sweep looks at it next, if one does.
    pub wake_at: Option<Timestamp>,
}

/// A part of the table.
#[derive(Default)]
pub struct SearchedPage {
    /// The number of rows in it.
    pub rows: u64,
    pub unreadable: Vec<UnreadableRow>,
    /// The wake-ups of rows that can be read, and are still set aside. Those of deliveries come with their accounts.
    pub set_aside: Vec<(WakeUp, Option<UserId>)>,
    /// Where the next part begins.
    pub next: Option<StartKey>,
}

/// The members of a notice that tell whose it is.
#[derive(Default, Deserialize)]
struct NoticeOwner {
    account_id: Option<UserId>,
    endpoint_id: Option<EndpointId>,
}

impl WebhookStore {
    /// Returns about how many rows the table has, if that is known.
    pub async fn about_rows(&self) -> Result<Option<u64>, StoreError> {
        about_rows(&self.client, &self.table).await
    }

    /// Reads a part of the table.
    pub async fn search_page(&self, from: Option<StartKey>) -> Result<SearchedPage, StoreError> {
        let scan = self.client.scan().table_name(&self.table).consistent_read(true).set_exclusive_start_key(from);
        let found = scan.send().await?;
        let mut page = SearchedPage { rows: found.items().len() as u64, ..SearchedPage::default() };
        for row in found.items() {
            page.add(row);
        }
        Ok(SearchedPage { next: found.last_evaluated_key, ..page })
    }

    /// Moves the wake-up of a row that was set aside to `now`, so that it is looked at soon: by the drain of an `account`,
    /// or by a sweep. Returns whether the wake-up was still there.
    pub async fn bring_back(
        &self,
        wake_up: &WakeUp,
        account: Option<UserId>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        if let Some(account) = account {
            self.call_drain_by(account, now, now).await?;
        }
        self.move_wake_up(wake_up, "SET #wake_at = :to REMOVE #set_aside", now).await
    }
}

impl SearchedPage {
    fn add(&mut self, row: &Row) {
        let unreadable = unreadable(row);
        if unreadable.is_empty() && row.contains_key(SET_ASIDE) && row.get(SET_ASIDE) == row.get(WAKE_AT) {
            let account = Attributes(row).parsed(ACCOUNT_ID).ok();
            self.set_aside.extend(WakeUp::from_entry(row).map(|wake_up| (wake_up, account)));
        }
        self.unreadable.extend(unreadable);
    }
}

impl UnreadableRow {
    fn new(kind: RowKind, row: &Row, error: StoreError) -> Self {
        let read = Attributes(row);
        let owner = read.text(NOTICE).and_then(|text| serde_json::from_str(text).ok());
        let NoticeOwner { account_id, endpoint_id } = owner.unwrap_or_default();
        let found = read.text(PK).and_then(table::endpoint_of_finder);
        Self {
            kind,
            unreadable: Unreadable::new(row, error),
            account_id: read.parsed(ACCOUNT_ID).ok().or(account_id),
            endpoint_id: read.parsed(ENDPOINT_ID).ok().or(endpoint_id).or(found),
            wake_at: read.number(WAKE_AT).map(Timestamp::from_millis),
        }
    }

    fn endpoint(account: &Row, endpoint: UnreadableEndpoint) -> Self {
        let account_id = Attributes(account).text(PK).and_then(table::account_of);
        let UnreadableEndpoint { id, unreadable, .. } = endpoint;
        Self { kind: RowKind::Endpoint, unreadable, account_id, endpoint_id: Some(id), wake_at: None }
    }
}

/// Returns what cannot be read of a row: nothing, the row, or some of an account's endpoints.
fn unreadable(row: &Row) -> Vec<UnreadableRow> {
    let pk = Attributes(row).text(PK).unwrap_or_default();
    if pk.starts_with(ACCOUNT_PARTITION) {
        let found = endpoints(row).unreadable.into_iter();
        return found.map(|endpoint| UnreadableRow::endpoint(row, endpoint)).collect();
    }
    let (kind, read) = match pk {
        pk if pk.starts_with(DELIVERY_PARTITION) => (RowKind::Delivery, from_row(row).map(drop)),
        pk if pk.starts_with(NOTICE_PARTITION) => (RowKind::Notice, EndpointNotice::from_row(row).map(drop)),
        pk if pk.starts_with(FINDER_PARTITION) => (RowKind::Finder, StoredFinder::from_row(row).map(drop)),
        pk if pk.starts_with(DRAIN_PARTITION) => (RowKind::Drain, drain(row)),
        _ => (RowKind::Unknown, Err(StoreError::corrupt(PK))),
    };
    read.err().into_iter().map(|error| UnreadableRow::new(kind, row, error)).collect()
}

fn drain(row: &Row) -> Result<(), StoreError> {
    // Before the first call there is only the note of a removal.
    if row.contains_key(TOKEN) { Drain::from_row(row).map(drop) } else { Ok(()) }
}
