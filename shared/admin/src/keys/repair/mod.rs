//! Brings the rows of keys back in line, after a restore that holds some but not all rows of recent transactions.
//!
//! Whatever is there in part is resolved to the safe side. A key that a rotation replaced is revoked, unless its own row
//! names the new key: then the rotation is there as a whole, and its overlap may not have ended. A key that is
//! accepted can be found, so that it can be listed and revoked. A row that finds no key is removed, because the text of
//! that key is not accepted any more.
//!
//! A restored table is from before what was done since then. The damaged table may still tell what that was. So the keys
//! that it has as revoked or replaced are revoked.

mod stored;

use std::collections::BTreeMap;

use api::auth::KeyStatus;
use api::auth::table::{self, HASH, PK, REPLACED_BY, STATUS};
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, TransactWriteItem};
use common::resources::TTL;
use common::rows::Unreadable;
use common::store::{Attributes, Row, StoreError, changed, retry_conflicts, s};
use common::transaction;
pub use stored::ChangedKey;
pub(super) use stored::unreadable;
use stored::{Named, StoredFinder, StoredKey, StoredRows, is_replaced_by, is_unrevoked};

use crate::keys::{CONFLICT_ATTEMPTS, KeyAdmin};

/// A part of the table.
pub struct KeysPage {
    /// The number of keys in it that were looked at.
    pub keys: u64,
    /// Those that were brought in line. The rows of one key may lie in several parts.
    pub changed: Vec<ChangedKey>,
    /// Rows that were left as they are.
    pub unreadable: Vec<Unreadable>,
    /// Where the next part begins.
    pub next: Option<Row>,
}

impl KeyAdmin {
    /// Reads a part of the table and brings its rows in line, unless it is only a trial. It may be repeated after a
    /// crash at any step, because a row is removed only after what it tells was done.
    pub async fn repair_page(&self, from: Option<Row>, dry_run: bool) -> Result<KeysPage, StoreError> {
        let scan = self.client.scan().table_name(&self.table).consistent_read(true).set_exclusive_start_key(from);
        let scanned = scan.send().await?;
        let StoredRows { keys, finders, unreadable } = StoredRows::from_rows(scanned.items());
        let named = self.named(&keys, &finders).await?;
        let next = scanned.last_evaluated_key;
        let mut page = KeysPage { keys: keys.len() as u64, changed: Vec::new(), unreadable, next };
        for key in &keys {
            self.repair_key(key, &named, dry_run, &mut page).await?;
        }
        for finder in &finders {
            self.repair_finder(finder, &named, dry_run, &mut page).await?;
        }
        Ok(page)
    }

    async fn repair_key(
        &self,
        key: &StoredKey,
        named: &Named,
        dry_run: bool,
        page: &mut KeysPage,
    ) -> Result<(), StoreError> {
        self.repair_replaced(key.replaces.as_deref(), &key.hash, named, dry_run, page).await?;
        let missing: Vec<Row> = key.finders().into_iter().filter(|finder| !named.has_finder(key, finder)).collect();
        if !missing.is_empty() {
            page.changed.push(key.changed());
            if !dry_run {
                self.put_finders(missing).await?;
            }
        }
        Ok(())
    }

    async fn repair_finder(
        &self,
        finder: &StoredFinder,
        named: &Named,
        dry_run: bool,
        page: &mut KeysPage,
    ) -> Result<(), StoreError> {
        if named.has_key(&finder.hash) {
            return Ok(());
        }
        self.repair_replaced(finder.replaces.as_deref(), &finder.hash, named, dry_run, page).await?;
        let StoredFinder { key_id, user_id, .. } = *finder;
        page.changed.push(ChangedKey { key_id, user_id });
        if dry_run { Ok(()) } else { self.remove_finder(finder).await }
    }

    /// Revokes the key that the key with the hash `by` replaced, if its row does not have the rotation.
    async fn repair_replaced(
        &self,
        replaced: Option<&str>,
        by: &str,
        named: &Named,
        dry_run: bool,
        page: &mut KeysPage,
    ) -> Result<(), StoreError> {
        let Some((hash, row)) = replaced.and_then(|hash| Some((hash, named.not_ended(hash, by)?))) else {
            return Ok(());
        };
        match StoredKey::from_row(hash, row) {
            Ok(key) => page.changed.push(key.changed()),
            Err(error) => page.unreadable.push(unreadable(row, error)),
        }
        if dry_run { Ok(()) } else { self.revoke_hash(hash).await.map(drop) }
    }

    // Each of these writes requires that the rows are still as they were read.

    /// Puts rows that find a key, unless they are there and stay.
    async fn put_finders(&self, finders: Vec<Row>) -> Result<(), StoreError> {
        for finder in finders {
            retry_conflicts(CONFLICT_ATTEMPTS, || async {
                let put = self.client.put_item().table_name(&self.table).set_item(Some(finder.clone()));
                let put = put.condition_expression("attribute_not_exists(#pk) OR attribute_exists(#ttl)");
                let put = put.expression_attribute_names("#pk", PK).expression_attribute_names("#ttl", TTL);
                changed(put.send().await)
            })
            .await?;
        }
        Ok(())
    }

    /// Removes a row that finds a key, if that key is still missing.
    async fn remove_finder(&self, finder: &StoredFinder) -> Result<(), StoreError> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(finder.place.clone()))
            .condition_expression("#hash = :hash")
            .expression_attribute_names("#hash", HASH)
            .expression_attribute_values(":hash", s(&finder.hash))
            .build()?;
        let absent = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(table::hash_row(&finder.hash)))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK)
            .build()?;
        let writes = [
            TransactWriteItem::builder().delete(delete).build(),
            TransactWriteItem::builder().condition_check(absent).build(),
        ];
        let sent = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.to_vec()));
            transaction::send(request).await
        });
        // If a condition failed, the row is gone already, or its key is there.
        sent.await.map(drop)
    }
}

/// How a key was ended.
enum Ended {
    Revoked,
    /// By a rotation to the key with this hash, whose overlap may not have ended.
    ReplacedBy(String),
}

impl KeyAdmin {
    /// Reads a part of `damaged`, and revokes the keys that are revoked or replaced there, unless it is only a trial.
    /// Returns those that were not ended here. What the overlap of a rotation leaves of a key is not kept: the key that
    /// was to take its place is gone here, so its owner needs a new one in any case.
    pub async fn revoke_as_in(&self, damaged: &Self, from: Option<Row>, dry_run: bool) -> Result<KeysPage, StoreError> {
        let (ended, next) = damaged.ended(from).await?;
        let mut page = KeysPage { keys: ended.len() as u64, changed: Vec::new(), unreadable: Vec::new(), next };
        let rows = self.rows_at(ended.keys().map(|hash| table::hash_row(hash)).collect()).await?;
        for row in rows.iter().filter(|row| is_unrevoked(row)) {
            let Some(hash) = hash(row) else { continue };
            if matches!(ended.get(&hash), Some(Ended::ReplacedBy(successor)) if is_replaced_by(row, successor)) {
                continue;
            }
            match StoredKey::from_row(&hash, row) {
                Ok(key) => page.changed.push(key.changed()),
                Err(error) => page.unreadable.push(unreadable(row, error)),
            }
            if !dry_run {
                self.revoke_hash(&hash).await?;
            }
        }
        Ok(page)
    }

    /// Reads the hashes of keys that were ended from a part of the table. Returns them, and where the next part begins.
    async fn ended(&self, from: Option<Row>) -> Result<(BTreeMap<String, Ended>, Option<Row>), StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression("#status = :revoked OR attribute_exists(#replaced_by)")
            .projection_expression("#pk, #status, #replaced_by")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#replaced_by", REPLACED_BY)
            .expression_attribute_values(":revoked", s(KeyStatus::Revoked.as_str()))
            .set_exclusive_start_key(from);
        let scanned = scan.send().await?;
        let ended = scanned.items().iter().filter_map(|row| Some((hash(row)?, Ended::from_row(row))));
        Ok((ended.collect(), scanned.last_evaluated_key))
    }
}

impl Ended {
    fn from_row(row: &Row) -> Self {
        match Attributes(row).text(REPLACED_BY) {
            Some(successor) if is_unrevoked(row) => Self::ReplacedBy(successor.to_owned()),
            _ => Self::Revoked,
        }
    }
}

/// Returns the hash of a key's row.
fn hash(row: &Row) -> Option<String> {
    table::hash_of_partition(Attributes(row).text(PK)?).map(str::to_owned)
}
