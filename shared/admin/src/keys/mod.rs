//! Creating, listing, changing, revoking and rotating keys.

mod ownership;
mod repair;
mod update;

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{Put, ReturnValue, TransactWriteItem, Update};
use futures_util::future::try_join_all;
use thiserror::Error;
use uuid::Uuid;

use auth::table;
use auth::table::{HASH, KeyRecord, KeyStatus, PK, REPLACED_BY, REPLACES, STATUS};
use auth::{KeyHash, KeyText};
use platform::rows::{Rows, Unreadable};
use platform::store::{Attributes, Row, StoreError, get_row, retry_conflicts, s};
use types::clock::Clock;
use types::ids::{KeyId, UserId};
use types::scope::{Scopes, Tier};
use types::timestamp::Timestamp;

pub use repair::{KeyFinding, KeyProblem, KeysPage};
pub use update::{KeyUpdate, LimitChange, MAX_LIMIT};

const CONFLICT_ATTEMPTS: u32 = 8;
const MAX_NAME_BYTES: usize = 128;

/// What an owner chooses about a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub user_id: UserId,
    /// The owner's name for the key, 1 to 128 bytes.
    pub name: Option<String>,
    pub tier: Tier,
    /// A limit of the key's own, instead of its tier's.
    pub limit_override: Option<u32>,
    /// At least one.
    pub scopes: Scopes,
    /// From when on the key is refused, or `None` if it never expires.
    pub expires_at: Option<Timestamp>,
}

/// Why a key was not made, changed or found.
#[derive(Debug, Error)]
pub enum AdminError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no key has the id {0}")]
    Unknown(KeyId),
    /// Only an active key can be changed or rotated.
    #[error("key {0} is revoked or expired; create a new one instead")]
    NotActive(KeyId),
    /// Somebody else changed the key at the same moment. Nothing was done.
    #[error("somebody else changed the key at the same moment; check it and try again")]
    Changed,
    #[error("{field}: {reason}")]
    Invalid {
        field: &'static str,
        /// The rule that the field breaks.
        reason: &'static str,
    },
}

/// Administers the keys of a stack.
pub struct KeyAdmin {
    client: Client,
    table: String,
    clock: Arc<dyn Clock>,
}

impl KeyAdmin {
    pub fn new(client: Client, table: String, clock: Arc<dyn Clock>) -> Self {
        Self { client, table, clock }
    }

    /// Creates a key. This is the only time that its text is returned. The text is stored nowhere.
    pub async fn create(&self, new: NewKey) -> Result<(KeyText, KeyRecord), AdminError> {
        self.check(&new)?;
        let (text, record) = self.fresh(new)?;
        let puts = self.puts(&text.hash(), &record, None)?;
        self.transact(&puts).await?;
        Ok((text, record))
    }

    /// Returns a user's keys, oldest first, including revoked ones. A key that cannot be read is named by its entry in
    /// the user's list, and so by its id, because a key's own row lies under its hash.
    pub async fn list(&self, user: UserId) -> Result<Rows<KeyRecord>, AdminError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#pk = :user")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_values(":user", s(table::user_partition(user)))
            .into_paginator()
            .items()
            .send();
        let mut keys = Vec::new();
        while let Some(entry) = pages.next().await {
            keys.push(self.listed(entry.map_err(StoreError::from)?));
        }
        let mut keys: Rows<KeyRecord> = try_join_all(keys).await?.into_iter().flatten().collect();
        keys.readable.sort_by_key(|key| (key.created_at, key.key_id));
        Ok(keys)
    }

    /// Reads the key of an entry of a user's list. That the key cannot be read is a result; an error means that the store
    /// failed.
    async fn listed(&self, entry: Row) -> Result<Option<Result<KeyRecord, Unreadable>>, StoreError> {
        let found = match hash_of(&entry) {
            Ok(hash) => self.read(table::hash_row(hash)).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(found) => Ok(found.map(Ok)),
            Err(error @ StoreError::Corrupt { .. }) => Ok(Some(Err(Unreadable::new(&entry, error)))),
            Err(error) => Err(error),
        }
    }

    /// Revokes a key. Its very next request is refused, at any instance. Revoking it again changes nothing.
    ///
    /// The key's row need not be readable, because a key must never be left in use for that reason. Returns the key as
    /// it is now, or `None` if it is revoked and its row cannot be read.
    pub async fn revoke(&self, key_id: KeyId) -> Result<Option<KeyRecord>, AdminError> {
        let finder = self.finder(key_id).await?;
        // The layout is not looked at: under a wrong hash there would be no row, and nothing would be written.
        let hash = Attributes(&finder).text(HASH).ok_or_else(|| StoreError::corrupt(HASH))?;
        let row = self.revoke_hash(hash).await?.ok_or(AdminError::Unknown(key_id))?;
        Ok(KeyRecord::from_row(&row).ok())
    }

    /// Revokes the key with this hash. Returns its row, or `None` if there is no such key.
    async fn revoke_hash(&self, hash: &str) -> Result<Option<Row>, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(table::hash_row(hash)))
                .update_expression("SET #status = :revoked")
                .condition_expression("attribute_exists(#pk)")
                .expression_attribute_names("#pk", PK)
                .expression_attribute_names("#status", STATUS)
                .expression_attribute_values(":revoked", s(KeyStatus::Revoked.as_str()))
                .return_values(ReturnValue::AllNew);
            match update.send().await {
                Ok(updated) => Ok(Some(updated.attributes.unwrap_or_default())),
                Err(error) => match error.as_service_error() {
                    Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(None),
                    _ => Err(StoreError::from(error)),
                },
            }
        })
        .await
    }

    /// Replaces an active key by a new one with the same properties. One transaction creates the new key and
    /// revokes the old one. Their rows name each other, so that a repair can complete a rotation of which a restore
    /// brought back only a part.
    pub async fn rotate(&self, key_id: KeyId) -> Result<(KeyText, KeyRecord), AdminError> {
        let (old_hash, old) = self.find(key_id).await?;
        if !old.is_live(self.clock.now()) {
            return Err(AdminError::NotActive(key_id));
        }
        let KeyRecord { user_id, name, tier, limit_override, scopes, expires_at, .. } = old;
        let (text, record) = self.fresh(NewKey { user_id, name, tier, limit_override, scopes, expires_at })?;
        let mut writes = self.puts(&text.hash(), &record, Some(old_hash.as_str()))?;
        writes.push(self.revocation(&old_hash, &text.hash())?);
        self.transact(&writes).await?;
        Ok((text, record))
    }

    fn check(&self, new: &NewKey) -> Result<(), AdminError> {
        let invalid = |field, reason| Err(AdminError::Invalid { field, reason });
        if new.scopes.is_empty() {
            return invalid("scope", "at least one is needed");
        }
        check_name(new.name.as_deref())?;
        if new.expires_at.is_some_and(|at| at <= self.clock.now()) {
            return invalid("expires_at", "must lie in the future");
        }
        Ok(())
    }

    fn fresh(&self, new: NewKey) -> Result<(KeyText, KeyRecord), AdminError> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let text = KeyText::from_bits(bits);
        let record = KeyRecord {
            key_id: KeyId::from(Uuid::new_v4()),
            user_id: new.user_id,
            name: new.name,
            tier: new.tier,
            scopes: new.scopes,
            limit: new.limit_override.unwrap_or(new.tier.limit()),
            limit_override: new.limit_override,
            status: KeyStatus::Active,
            created_at: self.clock.now(),
            expires_at: new.expires_at,
            last_used_at: None,
            last4: text.last4().to_owned(),
        };
        Ok((text, record))
    }

    fn puts(
        &self,
        hash: &KeyHash,
        record: &KeyRecord,
        replaces: Option<&str>,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut key = record.to_row(hash);
        key.extend(replaces.map(|replaced| (REPLACES.to_owned(), s(replaced))));
        let [by_id, by_user] = finders(&hash.hex(), record.key_id, record.user_id, replaces);
        [key, by_id, by_user].into_iter().map(|row| self.put_new(row)).collect()
    }

    fn put_new(&self, row: Row) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(row))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK)
            .build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    fn revocation(&self, hash: &str, replaced_by: &KeyHash) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::hash_row(hash)))
            .update_expression("SET #status = :revoked, #replaced_by = :replaced_by")
            .condition_expression("#status = :active")
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#replaced_by", REPLACED_BY)
            .expression_attribute_values(":active", s(KeyStatus::Active.as_str()))
            .expression_attribute_values(":revoked", s(KeyStatus::Revoked.as_str()))
            .expression_attribute_values(":replaced_by", s(replaced_by.hex()))
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    async fn transact(&self, writes: &[TransactWriteItem]) -> Result<(), AdminError> {
        // All tries share one token, so repeating a write whose answer was lost succeeds and changes nothing.
        let token = Uuid::new_v4().to_string();
        let sent = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.to_vec()));
            let request = request.client_request_token(&token);
            platform::transaction::send(request).await
        });
        sent.await?.map_err(|_| AdminError::Changed)
    }

    async fn find(&self, key_id: KeyId) -> Result<(String, KeyRecord), AdminError> {
        let finder = self.finder(key_id).await?;
        let hash = hash_of(&finder)?;
        let record = self.read(table::hash_row(hash)).await?.ok_or(AdminError::Unknown(key_id))?;
        Ok((hash.to_owned(), record))
    }

    /// Returns the row that holds the hash of the key with this id.
    async fn finder(&self, key_id: KeyId) -> Result<Row, AdminError> {
        let found = get_row(&self.client, &self.table, table::id_row(key_id)).await?;
        found.ok_or(AdminError::Unknown(key_id))
    }

    async fn read(&self, key: Row) -> Result<Option<KeyRecord>, StoreError> {
        get_row(&self.client, &self.table, key).await?.map(|row| KeyRecord::from_row(&row)).transpose()
    }
}

fn check_name(name: Option<&str>) -> Result<(), AdminError> {
    if name.is_some_and(|name| name.is_empty() || name.len() > MAX_NAME_BYTES) {
        return Err(AdminError::Invalid { field: "name", reason: "must have 1 to 128 bytes" });
    }
    Ok(())
}

/// Returns the two rows that find a key: by its id, and by its user.
fn finders(hash: &str, key_id: KeyId, user_id: UserId, replaces: Option<&str>) -> [Row; 2] {
    [table::id_row(key_id), table::user_row(user_id, key_id)].map(|mut row| {
        row.insert(HASH.to_owned(), s(hash));
        row.extend(replaces.map(|replaced| (REPLACES.to_owned(), s(replaced))));
        row
    })
}

fn hash_of(row: &Row) -> Result<&str, StoreError> {
    table::FINDER_FORMAT.of_row(row)?;
    Attributes(row).text(HASH).ok_or_else(|| StoreError::corrupt(HASH))
}
