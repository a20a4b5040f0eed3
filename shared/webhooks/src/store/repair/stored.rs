//! The rows of endpoints as a repair reads them.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{EndpointFinding, EndpointProblem};
use crate::endpoint::{Endpoints, Notice, WebhookEndpoint, notice_id};
use crate::store::endpoint_row::{endpoints, notice_of};
use crate::store::table::{self, ACCOUNT_ID, ACCOUNT_PARTITION, FINDER_PARTITION, PK, REMOVED_AT};
use crate::store::{StartKey, WebhookStore};
use platform::batch_get::get_rows;
use platform::rows::Unreadable;
use platform::store::{Attributes, Row, StoreError, s};
use types::ids::{EndpointId, UserId};

/// The largest number of keys in a `BatchGetItem` (DynamoDB's limit).
const ROWS_PER_READ: usize = 100;

pub(super) struct StoredEndpoint {
    pub(super) endpoint: WebhookEndpoint,
    /// The notice that it was switched off, if it was and if its row tells.
    pub(super) notice: Option<Notice>,
}

/// The row that finds an endpoint, or found it before it was removed.
pub(in crate::store) struct StoredFinder {
    pub(super) endpoint_id: EndpointId,
    pub(super) account_id: UserId,
}

#[derive(Default)]
pub(super) struct StoredRows {
    pub(super) endpoints: Vec<StoredEndpoint>,
    pub(super) finders: Vec<StoredFinder>,
    /// What found endpoints that are noted as removed.
    pub(super) removed: Vec<StoredFinder>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// The rows that the rows of a page name, as far as they are there, by their partition keys.
pub(super) struct Named(BTreeMap<String, Row>);

impl StoredEndpoint {
    pub(super) fn finding(&self, problem: EndpointProblem) -> EndpointFinding {
        EndpointFinding { problem, endpoint_id: self.endpoint.id, account_id: self.endpoint.account_id }
    }
}

impl StoredRows {
    fn add(&mut self, row: &Row) {
        if partition(row).starts_with(ACCOUNT_PARTITION) {
            let Endpoints { readable, unreadable } = endpoints(row);
            self.unreadable.extend(unreadable.into_iter().map(|endpoint| endpoint.unreadable));
            self.endpoints.extend(readable.into_iter().map(|endpoint| {
                let notice = row.get(&table::endpoint_attribute(endpoint.id));
                let notice = notice.and_then(|value| notice_of(value, &endpoint));
                StoredEndpoint { endpoint, notice }
            }));
            return;
        }
        match StoredFinder::from_row(row) {
            Ok(finder) if row.contains_key(REMOVED_AT) => self.removed.push(finder),
            Ok(finder) => self.finders.push(finder),
            Err(error) => self.unreadable.push(Unreadable::new(row, error)),
        }
    }
}

impl StoredFinder {
    pub(in crate::store) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::FINDER_FORMAT.of_row(row)?;
        let endpoint_id = table::endpoint_of_finder(partition(row)).ok_or_else(|| StoreError::corrupt(PK))?;
        Ok(Self { endpoint_id, account_id: Attributes(row).parsed(ACCOUNT_ID)? })
    }
}

impl Named {
    /// Returns the row with this table key.
    pub(super) fn get(&self, key: &Row) -> Option<&Row> {
        self.0.get(partition(key))
    }

    /// Returns whether the endpoint that a row finds is in its account's row.
    pub(super) fn has_endpoint(&self, finder: &StoredFinder) -> bool {
        let account = self.get(&table::account(finder.account_id));
        account.is_some_and(|row| row.contains_key(&table::endpoint_attribute(finder.endpoint_id)))
    }
}

impl WebhookStore {
    /// Reads a part of the table. Returns its endpoints and what finds them, and where the next part begins.
    pub(super) async fn stored_rows(
        &self,
        from: Option<StartKey>,
    ) -> Result<(StoredRows, Option<StartKey>), StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression("begins_with(#pk, :account) OR begins_with(#pk, :finder)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_values(":account", s(ACCOUNT_PARTITION))
            .expression_attribute_values(":finder", s(FINDER_PARTITION))
            .set_exclusive_start_key(from);
        let found = scan.send().await?;
        let mut stored = StoredRows::default();
        for row in found.items() {
            stored.add(row);
        }
        Ok((stored, found.last_evaluated_key))
    }

    /// Reads the rows that these rows name: what finds an endpoint, its notice, and the account of what finds one.
    pub(super) async fn named(
        &self,
        endpoints: &[StoredEndpoint],
        finders: &[StoredFinder],
    ) -> Result<Named, StoreError> {
        let accounts: BTreeSet<UserId> = finders.iter().map(|finder| finder.account_id).collect();
        let mut keys: Vec<Row> = accounts.into_iter().map(table::account).collect();
        for StoredEndpoint { endpoint, notice } in endpoints {
            keys.push(table::finder(endpoint.id));
            let of_epoch = endpoint.is_on().then(|| notice_id(endpoint.id, endpoint.epoch));
            keys.extend(of_epoch.or(notice.as_ref().map(|notice| notice.notice_id)).map(table::notice));
        }
        let mut named = BTreeMap::new();
        for keys in keys.chunks(ROWS_PER_READ) {
            let rows = get_rows(&self.client, &self.table, keys.to_vec()).await?;
            named.extend(rows.into_iter().map(|row| (partition(&row).to_owned(), row)));
        }
        Ok(Named(named))
    }
}

/// Returns the partition key of a row.
fn partition(row: &Row) -> &str {
    Attributes(row).text(PK).unwrap_or_default()
}
