//! Reads the endpoints of all accounts.

use super::endpoint_row::endpoints;
use super::table::{ACCOUNT_PARTITION, PK};
use super::{StartKey, WebhookStore};
use crate::endpoint::{Endpoints, UnreadableEndpoint, WebhookEndpoint};
use platform::store::{StoreError, s};

/// A page of all endpoints.
#[derive(Clone, Debug)]
pub struct EndpointPage {
    /// In no particular order, except that those of one account come together.
    pub endpoints: Vec<WebhookEndpoint>,
    pub unreadable: Vec<UnreadableEndpoint>,
    pub next: Option<StartKey>,
}

impl WebhookStore {
    /// Returns a page of all endpoints. It scans the whole table, deliveries included, so it is only for rare work of
    /// an operator.
    pub async fn all_endpoints(&self, from: Option<StartKey>) -> Result<EndpointPage, StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression("begins_with(#pk, :account)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_values(":account", s(ACCOUNT_PARTITION))
            .set_exclusive_start_key(from);
        let found = scan.send().await?;
        let mut page = EndpointPage { endpoints: Vec::new(), unreadable: Vec::new(), next: found.last_evaluated_key };
        for row in found.items.unwrap_or_default() {
            let Endpoints { readable, unreadable } = endpoints(&row);
            page.endpoints.extend(readable);
            page.unreadable.extend(unreadable);
        }
        Ok(page)
    }
}
