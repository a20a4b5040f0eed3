//! A user's balance, which is one row.

use super::{Accounts, table};
use platform::store::{Attributes, StoreError, changed, get_row, n, s};
use types::ids::UserId;
use types::records::PublicBalance;

impl Accounts {
    /// Reads a user's balance. If none is known, it is six zeros (specification 2.7.3).
    pub async fn balance(&self, user: UserId) -> Result<PublicBalance, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::balance(user)).await? else {
            return Ok(PublicBalance::default());
        };
        table::BALANCE_FORMAT.of_row(&row)?;
        let data = Attributes(&row).text(table::DATA).unwrap_or_default();
        serde_json::from_str(data).map_err(|error| StoreError::corrupt(format!("balance of {user}: {error}")))
    }

    /// Stores a balance, unless the stored one is as new or newer. Returns whether anything changed.
    pub async fn put_balance(&self, user: UserId, balance: PublicBalance, version: u64) -> Result<bool, StoreError> {
        let data = serde_json::to_string(&balance)?;
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(table::balance(user)))
            .item(table::VERSION, n(version))
            .item(table::DATA, s(data))
            .condition_expression("attribute_not_exists(#version) OR #version < :version")
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":version", n(version));
        changed(put.send().await)
    }
}
