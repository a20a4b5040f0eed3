//! The gate: finds out whose key a request carries, whether that key may do this, and whether a token is left.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;

use super::bucket::{TokenRequest, clean_up};
use super::grant::{Grant, Refused};
use super::memory::Memory;
use super::table;
use super::text::KeyHash;
use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::ids::UserId;
use common::preflight;
use common::resources::Table;
use common::runtime::Service;
use common::scope::Budget;
use common::store::{StoreError, retry_conflicts};

/// How often the key write is tried. It meets a conflict only while its key is being rotated.
const CONFLICT_ATTEMPTS: u32 = 4;

/// Admits requests by one conditional write each. Refuses them by such a write, or as it did a moment ago.
pub struct Gate {
    client: Client,
    table: String,
    clock: Arc<dyn Clock>,
    memory: Memory,
}

impl Gate {
    pub fn new(client: Client, table: String, clock: Arc<dyn Clock>) -> Self {
        let memory = Memory::new(Arc::clone(&clock));
        Self { client, table, clock, memory }
    }

    /// Makes a gate over the keys table that the environment names.
    pub fn from_service(service: &Service<'_>) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Keys, Patience::Request, preflight::update)?;
        Ok(Self::new(client, table, Arc::clone(&service.clock)))
    }

    /// Returns the user of a key that this instance has admitted to this budget before and still remembers. A key's
    /// user never changes.
    pub fn remembered_user(&self, key: &KeyHash, budget: Budget) -> Option<UserId> {
        self.memory.user(&(*key, budget))
    }

    /// Takes a token from the budget, or returns why the request is refused.
    pub async fn admit(&self, key: &KeyHash, budget: Budget) -> Result<Grant, Refused> {
        let key_use = (*key, budget);
        // Held until the verdict is remembered.
        let _turn = self.memory.turn(&key_use).await;
        let now = self.clock.now();
        if let Some(refused) = self.memory.refusal(&key_use, now) {
            return Err(refused);
        }
        let mut request = [0; 16];
        getrandom::fill(&mut request)
            .map_err(|error| Refused::without_budget(StoreError::Defect(error.to_string()).into(), now))?;
        let attempt = TokenRequest { budget, now, request };
        let outcome = retry_conflicts(CONFLICT_ATTEMPTS, || self.write(key, &attempt)).await;
        let verdict = outcome.unwrap_or_else(|error| Err(Refused::without_budget(error.into(), now)));
        self.memory.remember(key_use, now, &verdict);
        verdict
    }

    /// Removes stale counters. If the call fails, a later one removes them.
    pub async fn clean_up(&self, key: &KeyHash, stale: &[String]) {
        let update = self.client.update_item().table_name(&self.table).set_key(Some(table::key_row(key)));
        if let Err(error) = clean_up(update, stale).send().await {
            tracing::warn!(error = %StoreError::from(error), "stale counters stay until the next clean-up");
        }
    }

    async fn write(&self, key: &KeyHash, attempt: &TokenRequest) -> Result<Result<Grant, Refused>, StoreError> {
        let update = self.client.update_item().table_name(&self.table).set_key(Some(table::key_row(key)));
        match attempt.take(update).send().await {
            Ok(taken) => {
                let row = taken.attributes().ok_or_else(|| StoreError::corrupt("no attributes returned"))?;
                Ok(Ok(attempt.granted(row)?))
            }
            Err(SdkError::ServiceError(error)) => match error.err() {
                UpdateItemError::ConditionalCheckFailedException(failed) => Ok(attempt.refused(failed.item())),
                _ => Err(SdkError::ServiceError(error).into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}
