//! Revokes the keys that another table has as revoked. A restored table is from before what was revoked since then, and
//! the damaged table may still tell what that was.

use auth::KeyStatus;
use auth::table::{self, PK, STATUS};
use platform::store::{Attributes, Row, StoreError, s};

use super::KeysPage;
use super::finding::KeyProblem;
use super::stored::{StoredKey, is_unrevoked, unreadable};
use crate::keys::KeyAdmin;

impl KeyAdmin {
    /// Reads a part of `damaged`, and revokes the keys that are revoked there, unless it is only a trial. Returns those
    /// that were not revoked here.
    pub async fn revoke_as_in(&self, damaged: &Self, from: Option<Row>, dry_run: bool) -> Result<KeysPage, StoreError> {
        let (hashes, next) = damaged.revoked(from).await?;
        let mut page = KeysPage { keys: 0, found: Vec::new(), unreadable: Vec::new(), next };
        let rows = self.rows_at(hashes.iter().map(|hash| table::hash_row(hash)).collect()).await?;
        for row in rows.iter().filter(|row| is_unrevoked(row)) {
            let Some(hash) = hash(row) else { continue };
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

    /// Reads the hashes of revoked keys from a part of the table. Returns them, and where the next part begins.
    async fn revoked(&self, from: Option<Row>) -> Result<(Vec<String>, Option<Row>), StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression("#status = :revoked")
            .projection_expression("#pk")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_values(":revoked", s(KeyStatus::Revoked.as_str()))
            .set_exclusive_start_key(from);
        let scanned = scan.send().await?;
        Ok((scanned.items().iter().filter_map(hash).collect(), scanned.last_evaluated_key))
    }
}

/// Returns the hash of a key's row.
fn hash(row: &Row) -> Option<String> {
    table::hash_of_partition(Attributes(row).text(PK)?).map(str::to_owned)
}
