//! The writes of a repair. Each requires that the rows are still as they were read.

use aws_sdk_dynamodb::types::{ConditionCheck, Delete, TransactWriteItem};

use auth::table::{self, HASH, LOST_SUCCESSOR, PK, REPLACED_BY};
use platform::store::{Row, StoreError, changed, retry_conflicts, s, updated};
use platform::transaction;

use super::stored::StoredFinder;
use crate::keys::{CONFLICT_ATTEMPTS, KeyAdmin};

impl KeyAdmin {
    /// Puts rows that find a key, unless they are there.
    pub(super) async fn put_finders(&self, finders: Vec<Row>) -> Result<(), StoreError> {
        for finder in finders {
            retry_conflicts(CONFLICT_ATTEMPTS, || async {
                let put = self.client.put_item().table_name(&self.table).set_item(Some(finder.clone()));
                let put = put.condition_expression("attribute_not_exists(#pk)");
                changed(put.expression_attribute_names("#pk", PK).send().await)
            })
            .await?;
        }
        Ok(())
    }

    /// Removes a row that finds a key, if that key is still missing.
    pub(super) async fn remove_finder(&self, finder: &StoredFinder) -> Result<(), StoreError> {
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

    /// Notes that the key which replaced this one is gone. By this note, a later repair tells a rotation that was whole
    /// from one that was cut.
    pub(super) async fn note_lost_successor(&self, hash: &str, successor: &str) -> Result<(), StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(table::hash_row(hash)))
                .update_expression("SET #lost_successor = :successor REMOVE #replaced_by")
                .condition_expression("#replaced_by = :successor")
                .expression_attribute_names("#replaced_by", REPLACED_BY)
                .expression_attribute_names("#lost_successor", LOST_SUCCESSOR)
                .expression_attribute_values(":successor", s(successor));
            updated(update.send().await)
        })
        .await
        .map(drop)
    }
}
