//! Reads the notices that were not sent yet, and marks them once they are sent.

use super::table::{NOTICE, PK, WAKE_AT};
use super::{WebhookStore, table};
use crate::endpoint::Notice;
use platform::store::{Attributes, StoreError, get_row};
use types::ids::NoticeId;

impl WebhookStore {
    /// Returns a notice, unless it is marked as sent. After a crash, a notice that was sent may not be marked.
    pub async fn unsent_notice(&self, id: NoticeId) -> Result<Option<Notice>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::notice(id)).await? else { return Ok(None) };
        if !row.contains_key(WAKE_AT) {
            return Ok(None);
        }
        table::NOTICE_FORMAT.of_row(&row)?;
        let notice = Attributes(&row).text(NOTICE).and_then(|text| serde_json::from_str(text).ok());
        notice.map(Some).ok_or_else(|| StoreError::corrupt(NOTICE))
    }

    /// Marks a notice as sent, by removing its wake-up.
    pub(crate) async fn notice_sent(&self, id: NoticeId) -> Result<(), StoreError> {
        let update = self.client.update_item().table_name(&self.table).set_key(Some(table::notice(id)));
        let update = update.update_expression("REMOVE #wake").expression_attribute_names("#wake", WAKE_AT);
        let update = update.condition_expression("attribute_exists(#pk)").expression_attribute_names("#pk", PK);
        update.send().await?;
        Ok(())
    }
}
