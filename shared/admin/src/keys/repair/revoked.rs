//! Revokes the keys that another table has as revoked or replaced. A restored table is from before what was done since
//! then, and the damaged table may still tell what that was.

use std::collections::BTreeMap;

use api::auth::KeyStatus;
use api::auth::table::{self, LOST_SUCCESSOR, PK, REPLACED_BY, STATUS};
use common::store::{Attributes, Row, StoreError, s};

use super::KeysPage;
use super::stored::{KeyProblem, StoredKey, is_replaced_by, is_unrevoked, unreadable};
use crate::keys::KeyAdmin;

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
        let mut page = KeysPage { keys: 0, found: Vec::new(), unreadable: Vec::new(), next };
        let rows = self.rows_at(ended.keys().map(|hash| table::hash_row(hash)).collect()).await?;
        for row in rows.iter().filter(|row| is_unrevoked(row)) {
            let Some(hash) = hash(row) else { continue };
            if matches!(ended.get(&hash), Some(Ended::ReplacedBy(successor)) if is_replaced_by(row, successor)) {
                continue;
            }
            match StoredKey::from_row(&hash, row) {
                Ok(key) => page.found.push(key.finding(KeyProblem::RevokedSince)),
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
            .filter_expression(
                "#status = :revoked OR attribute_exists(#replaced_by) OR attribute_exists(#lost_successor)",
            )
            .projection_expression("#pk, #status, #replaced_by, #lost_successor")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#replaced_by", REPLACED_BY)
            .expression_attribute_names("#lost_successor", LOST_SUCCESSOR)
            .expression_attribute_values(":revoked", s(KeyStatus::Revoked.as_str()))
            .set_exclusive_start_key(from);
        let scanned = scan.send().await?;
        let ended = scanned.items().iter().filter_map(|row| Some((hash(row)?, Ended::from_row(row))));
        Ok((ended.collect(), scanned.last_evaluated_key))
    }
}

impl Ended {
    fn from_row(row: &Row) -> Self {
        let read = Attributes(row);
        match read.text(REPLACED_BY).or_else(|| read.text(LOST_SUCCESSOR)) {
            Some(successor) if is_unrevoked(row) => Self::ReplacedBy(successor.to_owned()),
            _ => Self::Revoked,
        }
    }
}

/// Returns the hash of a key's row.
fn hash(row: &Row) -> Option<String> {
    table::hash_of_partition(Attributes(row).text(PK)?).map(str::to_owned)
}
