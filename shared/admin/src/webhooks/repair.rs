//! Lists the rows that this release cannot read, and brings back those that it can read again.

use super::{WebhookAdmin, WebhookAdminError};
use webhooks::store::UnreadableRow;

/// What a repair found in the table.
#[derive(Clone, Debug, Default)]
pub struct RowRepair {
    /// The number of rows.
    pub rows: u64,
    /// The number of rows that a sweep had set aside and that can be read again. The next sweep looks at them, unless
    /// the repair was only a trial.
    pub brought_back: u64,
    /// Rows that cannot be read, by their keys. They are left as they are.
    pub unreadable: Vec<UnreadableRow>,
}

impl WebhookAdmin {
    /// Returns about how many rows the table has, if that is known.
    pub async fn about_rows(&self) -> Result<Option<u64>, WebhookAdminError> {
        Ok(self.store.about_rows().await?)
    }

    /// Reads the whole table. Brings back the rows that can be read again, unless it is only a trial. Calls `report`
    /// after each page with the number of rows so far.
    pub async fn repair_rows(&self, dry_run: bool, report: impl Fn(u64)) -> Result<RowRepair, WebhookAdminError> {
        let (mut repair, mut from) = (RowRepair::default(), None);
        loop {
            let page = self.store.search_page(from).await?;
            for (wake_up, account) in &page.set_aside {
                let is_brought_back = dry_run || self.store.bring_back(wake_up, *account, self.clock.now()).await?;
                repair.brought_back += u64::from(is_brought_back);
            }
            repair.rows += page.rows;
            repair.unreadable.extend(page.unreadable);
            report(repair.rows);
            from = page.next;
            if from.is_none() {
                repair.unreadable.sort_by(|one, other| one.unreadable.cmp(&other.unreadable));
                return Ok(repair);
            }
        }
    }
}
