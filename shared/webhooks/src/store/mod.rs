//! The webhooks table: endpoints, deliveries, notices. No other code of the service reads or writes it.

mod accounts;
mod deliveries;
mod drains;
mod endpoint_steps;
mod endpoints;
mod listing;
mod notices;
mod repair;

mod table;
mod wake_ups;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::TransactWriteItem;
use futures_util::FutureExt;

pub use accounts::{Added, EndpointPage};
pub use deliveries::{Put, StepOutcome};
pub use endpoint_steps::{DisableOutcome, Hold};
pub use listing::{
    DeliveryCursor, DeliveryCursorError, DeliveryFilter, DeliveryList, DeliveryPage, MAX_PAGE_ROWS, Removal, Span,
    StartKey,
};
pub use repair::{EndpointRepair, RepairedPage};
pub use table::WAKE_SHARDS;
pub use wake_ups::{Due, UnreadableWakeUp, Waiting, WakeUp};

use common::aws::{Missing, Patience};
use common::change::Change;
use common::preflight::{Probe, ProbeFuture};
use common::resources::{Table, WAKE_AT, WAKE_INDEX, WAKE_SHARD};
use common::runtime::Service;
use common::store::{StoreError, n, retry_conflicts, s};
use common::transaction::{self, Cancelled};

/// How often a write is tried while it conflicts with a transaction.
const CONFLICT_ATTEMPTS: u32 = 8;

/// The webhooks table.
#[derive(Clone)]
pub struct WebhookStore {
    client: Client,
    table: String,
}

impl WebhookStore {
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    /// Returns the webhooks table that the environment names, to be checked by `probe`.
    pub fn from_service(service: &Service<'_>, patience: Patience, probe: Probe) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Webhooks, patience, probe)?;
        Ok(Self::new(client, table))
    }

    /// Makes all writes or none. Tries of one write that share a token are made at most once.
    async fn transact(
        &self,
        writes: Vec<TransactWriteItem>,
        token: Option<&str>,
    ) -> Result<Result<(), Cancelled>, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.clone()));
            transaction::send(request.set_client_request_token(token.map(str::to_owned))).await
        })
        .await
    }

    fn parts(&self, changes: &[Change]) -> Result<Vec<TransactWriteItem>, StoreError> {
        changes.iter().map(|change| change.part(&self.table)).collect()
    }
}

/// Checks a table by a `Query` of the index that a sweep reads.
pub fn probe_wake_index(client: &Client, table: String) -> ProbeFuture {
    let query = client.query().table_name(table).index_name(WAKE_INDEX).limit(1);
    let query = query.key_condition_expression("#shard = :nobody AND #at = :never");
    let query = query.expression_attribute_names("#shard", WAKE_SHARD).expression_attribute_names("#at", WAKE_AT);
    let query = query.expression_attribute_values(":nobody", s("nobody")).expression_attribute_values(":never", n(0));
    async move { Ok(query.send().await.map(drop)?) }.boxed()
}
