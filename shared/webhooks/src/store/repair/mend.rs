//! The writes of a repair. Each requires that the rows are still as they were read, and changes nothing otherwise.

use aws_sdk_dynamodb::types::{ConditionCheck, TransactWriteItem};

use super::stored::StoredFinder;
use crate::endpoint::{Notice, WebhookEndpoint};
use crate::notice::EndpointNotice;
use crate::store::table::{self, NOTICE_ID, PK};
use crate::store::{CONFLICT_ATTEMPTS, WebhookStore};
use platform::store::{StoreError, retry_conflicts, s};
use platform::transaction;
use types::ids::{EndpointId, UserId};
use types::timestamp::Timestamp;

impl WebhookStore {
    /// Puts the row that finds an endpoint.
    pub(super) async fn put_finder(&self, id: EndpointId, account: UserId) -> Result<(), StoreError> {
        let endpoint = self.check_endpoint(account, id, "attribute_exists(#e)")?;
        let put = TransactWriteItem::builder().put(self.new_finder(id, account)?).build();
        self.mend(vec![put, endpoint]).await
    }

    /// Notes in the row that finds an endpoint that this was removed.
    pub(super) async fn note_removal(&self, finder: &StoredFinder, now: Timestamp) -> Result<(), StoreError> {
        let StoredFinder { endpoint_id, account_id } = *finder;
        let endpoint = self.check_endpoint(account_id, endpoint_id, "attribute_not_exists(#e)")?;
        let update = self.removed_finder(endpoint_id, now).condition_expression("attribute_exists(#pk)");
        let update = update.expression_attribute_names("#pk", PK).build()?;
        self.mend(vec![TransactWriteItem::builder().update(update).build(), endpoint]).await
    }

    /// Switches an endpoint off as its notice says.
    pub(super) async fn complete_switch_off(
        &self,
        endpoint: &WebhookEndpoint,
        notice: &Notice,
    ) -> Result<(), StoreError> {
        let off = TransactWriteItem::builder().update(self.off(endpoint, notice)?).build();
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(table::notice(notice.notice_id)))
            .condition_expression("attribute_exists(#pk)")
            .expression_attribute_names("#pk", PK)
            .build()?;
        self.mend(vec![off, TransactWriteItem::builder().condition_check(check).build()]).await
    }

    /// Puts the notice of an endpoint that is off, for a sweep to send.
    pub(super) async fn put_notice(&self, notice: &Notice, wake_at: Timestamp) -> Result<(), StoreError> {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(notice.account_id)))
            .condition_expression("#e.#notice = :notice")
            .expression_attribute_names("#e", table::endpoint_attribute(notice.endpoint_id))
            .expression_attribute_names("#notice", NOTICE_ID)
            .expression_attribute_values(":notice", s(notice.notice_id.to_string()))
            .build()?;
        let put = TransactWriteItem::builder()
            .put(self.new_notice(&EndpointNotice::Disabled(notice.clone()), wake_at)?)
            .build();
        self.mend(vec![put, TransactWriteItem::builder().condition_check(check).build()]).await
    }

    fn check_endpoint(
        &self,
        account: UserId,
        id: EndpointId,
        condition: &str,
    ) -> Result<TransactWriteItem, StoreError> {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(account)))
            .condition_expression(condition)
            .expression_attribute_names("#e", table::endpoint_attribute(id))
            .build()?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    async fn mend(&self, writes: Vec<TransactWriteItem>) -> Result<(), StoreError> {
        let sent = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.clone()));
            transaction::send(request).await
        });
        sent.await.map(drop)
    }
}
