//! Creating, finding, changing, revoking and rotating keys.

mod bounds;
mod change;
pub mod document;
mod repair;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::auth::table::{HASH, KeyRecord, KeyStatus, PK, REPLACES, REVOKED_AT, SK, STATUS, hash_row};
use api::auth::{KeyHash, KeyText, Usage, table};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValue, TransactWriteItem};
pub use bounds::KeyBounds;
use bounds::{ENDED_KEPT_FOR_MILLIS, Reason, Turn};
pub use change::{KeyUpdate, LimitChange, MAX_OVERLAP, Rotated};
use common::backoff;
use common::clock::Clock;
use common::ids::{KeyId, UserId};
use common::resources::{MAX_KEYS, TTL};
use common::rows::{Rows, Unreadable};
use common::scope::{Scopes, Tier};
use common::store::{Attributes, Row, StoreError, get_row, n, retry_conflicts, s, updated};
use common::timestamp::{DAY_MILLIS, Timestamp};
use futures_util::{StreamExt, TryStreamExt, stream};
use repair::unreadable;
pub use repair::{ChangedKey, KeysPage};
use thiserror::Error;
use uuid::Uuid;

/// The highest limit of a key's own, per minute and scope. Each admitted request is a write to the key's one row, and
/// DynamoDB takes at most 1,000 of those a second, which four scopes use up at 250 each.
pub const MAX_LIMIT: u32 = 15_000;

const CONFLICT_ATTEMPTS: u32 = 8;
const MAX_NAME_BYTES: usize = 128;
/// How many keys of a list are read at the same time. Each read needs a connection of its own.
const LIST_CONCURRENCY: usize = 32;

/// What an owner chooses about a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub user_id: UserId,
    /// The owner's name for the key, 1 to 128 bytes.
    pub name: Option<String>,
    pub tier: Tier,
    /// A limit of the key's own, instead of its tier's: at most [`MAX_LIMIT`].
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
    /// A rotation replaced the key already, and the key is only accepted until the overlap ends.
    #[error("key {key_id} was already replaced by key {successor}")]
    Replaced { key_id: KeyId, successor: KeyId },
    /// Somebody else changed the key at the same moment. Nothing was done.
    #[error("somebody else changed the key at the same moment; check it and try again")]
    Changed,
    #[error("a user may have at most {most} keys that are accepted, and this one has no room; revoke one first")]
    TooMany { most: u32 },
    /// Nothing was done. Another key may be made after so many seconds.
    #[error("{most} keys were made for the user today, and no more are; try again in {seconds} seconds")]
    TooManyToday { most: u32, seconds: u32 },
    #[error("{field}: {reason}")]
    Invalid {
        field: &'static str,
        /// The rule that the field breaks.
        reason: &'static str,
    },
}

/// What became of all keys of a user.
#[derive(Debug, Default)]
pub struct AllRevoked {
    /// The keys that were not revoked before.
    pub revoked: Vec<KeyId>,
    /// The keys that may still be accepted, and why.
    pub failed: Vec<(KeyId, AdminError)>,
}

/// What is known of a transaction that makes a key.
enum Making {
    Made,
    /// A condition failed, so nothing was written.
    Refused,
    /// No answer tells whether it was made.
    InDoubt(StoreError),
}

/// Administers the keys of a stack.
pub struct KeyAdmin {
    client: Client,
    table: String,
    clock: Arc<dyn Clock>,
    bounds: KeyBounds,
}

impl KeyAdmin {
    /// Administers keys as an operator does, with at most [`MAX_KEYS`] live keys for each user.
    pub fn new(client: Client, table: String, clock: Arc<dyn Clock>) -> Self {
        Self { client, table, clock, bounds: KeyBounds::of_operator(MAX_KEYS) }
    }

    #[must_use]
    pub fn with_bounds(self, bounds: KeyBounds) -> Self {
        Self { bounds, ..self }
    }

    /// Creates a key, if its user has room for it. This is the only time that its text is returned. The text is stored
    /// nowhere.
    pub async fn create(&self, new: NewKey) -> Result<(KeyText, KeyRecord), AdminError> {
        self.check(&new)?;
        for attempt in 0..CONFLICT_ATTEMPTS {
            let (text, record) = self.fresh(new.clone())?;
            let Some(place) = self.place(&record, Reason::New).await? else {
                tokio::time::sleep(backoff::pause(attempt)).await;
                continue;
            };
            let mut writes = self.puts(&text.hash(), &record, None)?;
            writes.push(place);
            match self.make(&writes, &text.hash()).await? {
                Making::Made => return Ok((text, record)),
                // Somebody else made a key for this user.
                Making::Refused => tokio::time::sleep(backoff::pause(attempt)).await,
                Making::InDoubt(error) => return Err(error.into()),
            }
        }
        Err(AdminError::Changed)
    }

    /// Returns a user's keys, oldest first, including revoked ones. A key that cannot be read is named by its entry in
    /// the user's list, and so by its id, because a key's own row lies under its hash.
    pub async fn list(&self, user: UserId) -> Result<Rows<KeyRecord>, AdminError> {
        let entries = self.entries(user).await?;
        let keys = stream::iter(entries).map(|entry| self.listed(entry)).buffered(LIST_CONCURRENCY);
        let keys: Vec<_> = keys.try_collect().await?;
        let mut keys: Rows<KeyRecord> = keys.into_iter().flatten().collect();
        keys.readable.sort_by_key(|key| (key.created_at, key.key_id));
        Ok(keys)
    }

    /// Returns the keys of all users with their use. Reads the whole table. Calls `report` after each page with the number
    /// of keys so far.
    pub async fn list_all(&self, report: impl Fn(u64)) -> Result<Rows<(KeyRecord, Usage)>, AdminError> {
        let mut pages = self.client.scan().table_name(&self.table).consistent_read(true).into_paginator().send();
        let mut keys = Rows::default();
        while let Some(page) = pages.next().await {
            for row in page.map_err(StoreError::from)?.items() {
                if Attributes(row).text(PK).is_some_and(|pk| table::hash_of_partition(pk).is_some()) {
                    let read = KeyRecord::from_row(row).and_then(|key| Ok((key, Usage::from_row(row)?)));
                    match read {
                        Ok(key) => keys.readable.push(key),
                        Err(error) => keys.unreadable.push(unreadable(row, error)),
                    }
                }
            }
            report(keys.readable.len() as u64);
        }
        Ok(keys)
    }

    /// Returns the rows of a user's list.
    async fn entries(&self, user: UserId) -> Result<Vec<Row>, StoreError> {
        let pages = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#pk = :user")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_values(":user", s(table::user_partition(user)))
            .into_paginator()
            .items();
        Ok(pages.send().collect::<Result<_, _>>().await?)
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
        let record = KeyRecord::from_row(&row).ok();
        self.forget_later(key_id, record.as_ref().map(|record| record.user_id)).await;
        Ok(record)
    }

    /// Revokes all keys of a user, also those that are made meanwhile. One that cannot be revoked keeps no other. An error
    /// means that the list cannot be read.
    pub async fn revoke_all(&self, user: UserId) -> Result<AllRevoked, AdminError> {
        let (mut all, mut seen) = (AllRevoked::default(), BTreeSet::new());
        loop {
            let mut new = self.entries(user).await?;
            new.retain(|entry| Attributes(entry).text(SK).is_some_and(|id| seen.insert(id.to_owned())));
            if new.is_empty() {
                return Ok(all);
            }
            for entry in new {
                let key_id: KeyId = Attributes(&entry).parsed(SK)?;
                match self.revoke_listed(key_id, user, entry).await {
                    Ok(true) => all.revoked.push(key_id),
                    Ok(false) => {}
                    Err(error) => all.failed.push((key_id, error)),
                }
            }
        }
    }

    /// Revokes the key of an entry of a user's list. Its other rows need not be there. Returns whether it was not revoked
    /// before.
    async fn revoke_listed(&self, key_id: KeyId, user: UserId, entry: Row) -> Result<bool, AdminError> {
        let hash = Attributes(&entry).text(HASH).unwrap_or_default().to_owned();
        if let Some(Ok(key)) = self.listed(entry).await?
            && key.status == KeyStatus::Revoked
        {
            return Ok(false);
        }
        if self.revoke_hash(&hash).await?.is_some() {
            self.forget_later(key_id, Some(user)).await;
            return Ok(true);
        }
        // The entry leads to no key. The other row that finds it may.
        match self.revoke(key_id).await {
            Ok(_) => Ok(true),
            Err(AdminError::Unknown(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Has the rows that find an ended key removed along with it. If that fails they stay, and find nothing.
    pub(super) async fn forget_later(&self, key_id: KeyId, user: Option<UserId>) {
        let rows = [Some(table::id_row(key_id)), user.map(|user| table::user_row(user, key_id))];
        for row in rows.into_iter().flatten() {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(row))
                .update_expression("SET #ttl = :ttl")
                .condition_expression("attribute_exists(#pk)")
                .expression_attribute_names("#ttl", TTL)
                .expression_attribute_names("#pk", PK)
                .expression_attribute_values(":ttl", self.removal());
            if let Err(error) = updated(update.send().await) {
                tracing::warn!(%key_id, %error, "a row that finds an ended key stays");
            }
        }
    }

    /// Returns when the rows of a key may be removed that ends now.
    fn removal(&self) -> AttributeValue {
        n(self.clock.now().plus_millis(ENDED_KEPT_FOR_MILLIS).seconds())
    }

    /// Revokes the key with this hash. Returns its row, or `None` if there is no such key.
    async fn revoke_hash(&self, hash: &str) -> Result<Option<Row>, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(table::hash_row(hash)))
                .update_expression("SET #status = :revoked, #ttl = :ttl, #at = if_not_exists(#at, :now)")
                .condition_expression("attribute_exists(#pk)")
                .expression_attribute_names("#pk", PK)
                .expression_attribute_names("#status", STATUS)
                .expression_attribute_names("#ttl", TTL)
                .expression_attribute_names("#at", REVOKED_AT)
                .expression_attribute_values(":now", n(self.clock.now().millis()))
                .expression_attribute_values(":ttl", self.removal())
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

    /// Returns the write that takes a place for this key of its user. It fails if anybody else takes one first. Returns `None`
    /// as long as the list does not show the key that was made last.
    async fn place(&self, key: &KeyRecord, reason: Reason) -> Result<Option<TransactWriteItem>, AdminError> {
        let (user, now) = (key.user_id, self.clock.now());
        let row = get_row(&self.client, &self.table, table::turn_row(user)).await?;
        let seen = row.as_ref().map(Turn::from_row).transpose()?;
        let next = seen.unwrap_or_default().next(key.key_id, now, self.bounds.a_day < u32::MAX);
        if next.made > self.bounds.a_day {
            let tomorrow = (next.day + 1) * DAY_MILLIS - now.millis();
            let seconds = u32::try_from(tomorrow.div_euclid(1_000) + 1).unwrap_or(u32::MAX);
            return Err(AdminError::TooManyToday { most: self.bounds.a_day, seconds });
        }
        let most = match reason {
            Reason::New => self.bounds.live,
            Reason::Overlap => self.bounds.live_while_replacing,
            Reason::Replacement => u32::MAX,
        };
        if most < u32::MAX {
            let keys = self.list(user).await?;
            // One that cannot be read may be accepted.
            let live = keys.readable.iter().filter(|key| key.is_live(now)).count() + keys.unreadable.len();
            if live >= most as usize {
                return Err(AdminError::TooMany { most });
            }
            let newest = seen.and_then(|turn| turn.newest);
            if let Some(newest) = newest.filter(|newest| keys.readable.iter().all(|key| key.key_id != *newest))
                && get_row(&self.client, &self.table, table::user_row(user, newest)).await?.is_some()
                && keys.unreadable.is_empty()
            {
                return Ok(None);
            }
        }
        Ok(Some(next.write(&self.table, user, seen, now)?))
    }

    fn check(&self, new: &NewKey) -> Result<(), AdminError> {
        let invalid = |field, reason| Err(AdminError::Invalid { field, reason });
        if new.scopes.is_empty() {
            return invalid("scope", "at least one is needed");
        }
        check_name(new.name.as_deref())?;
        check_limit(new.limit_override)?;
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
            replaced_by: None,
            revoked_at: None,
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
        let ttl = record.expires_at.map(|at| n(at.plus_millis(ENDED_KEPT_FOR_MILLIS).seconds()));
        let expiring = |mut row: Row| {
            row.extend(ttl.clone().map(|ttl| (TTL.to_owned(), ttl)));
            row
        };
        [key, by_id, by_user].into_iter().map(|row| self.put_new(expiring(row))).collect()
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

    /// Sends the transaction that makes the key with this hash.
    async fn make(&self, writes: &[TransactWriteItem], hash: &KeyHash) -> Result<Making, StoreError> {
        // All tries share one token, so repeating a write whose answer was lost succeeds and changes nothing.
        let token = Uuid::new_v4().to_string();
        let sent = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.to_vec()));
            let request = request.client_request_token(&token);
            common::transaction::send(request).await
        });
        match sent.await {
            Ok(Ok(())) => Ok(Making::Made),
            Ok(Err(_)) => Ok(Making::Refused),
            Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => {
                Ok(self.settle(hash, error).await)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks whether a key was made although no answer said so. Its absence proves nothing, because a try may still be
    /// under way.
    async fn settle(&self, hash: &KeyHash, doubt: StoreError) -> Making {
        match get_row(&self.client, &self.table, table::hash_row(&hash.hex())).await {
            Ok(Some(_)) => Making::Made,
            Ok(None) | Err(_) => Making::InDoubt(doubt),
        }
    }

    async fn find(&self, key_id: KeyId) -> Result<(String, KeyRecord), AdminError> {
        let (hash, row) = self.find_row(key_id).await?;
        Ok((hash, KeyRecord::from_row(&row)?))
    }

    /// Returns the hash and the row of the key with this id.
    async fn find_row(&self, key_id: KeyId) -> Result<(String, Row), AdminError> {
        let finder = self.finder(key_id).await?;
        let hash = hash_of(&finder)?.to_owned();
        let row = get_row(&self.client, &self.table, table::hash_row(&hash)).await?;
        Ok((hash, row.ok_or(AdminError::Unknown(key_id))?))
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
    let is_fit = |name: &str| (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
    if !name.is_none_or(is_fit) {
        return Err(AdminError::Invalid {
            field: "name",
            reason: "must have 1 to 128 bytes and no control characters",
        });
    }
    Ok(())
}

fn check_limit(limit: Option<u32>) -> Result<(), AdminError> {
    if limit.is_some_and(|limit| limit > MAX_LIMIT) {
        return Err(AdminError::Invalid { field: "limit", reason: "must be at most 15,000" });
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

impl KeyAdmin {
    /// Returns a key, revoked or not.
    pub async fn get(&self, key_id: KeyId) -> Result<KeyRecord, AdminError> {
        Ok(self.find(key_id).await?.1)
    }

    /// Returns a key, revoked or not, with its use.
    pub async fn show(&self, key_id: KeyId) -> Result<(KeyRecord, Usage), AdminError> {
        let (_, row) = self.find_row(key_id).await?;
        Ok((KeyRecord::from_row(&row)?, Usage::from_row(&row)?))
    }

    /// Returns the key that has this text, revoked or not, or `None` if no key has it.
    pub async fn identify(&self, text: &KeyText) -> Result<Option<KeyRecord>, AdminError> {
        Ok(self.read(hash_row(&text.hash().hex())).await?)
    }
}

impl KeyAdmin {
    /// Returns whether the key is in the user's list. The key itself is not read, so a key of another user takes the
    /// same call as one that does not exist.
    pub(crate) async fn is_owned_by(&self, key_id: KeyId, user: UserId) -> Result<bool, StoreError> {
        Ok(get_row(&self.client, &self.table, table::user_row(user, key_id)).await?.is_some())
    }
}
