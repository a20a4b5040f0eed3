//! Whether a key belongs to a user.

use super::KeyAdmin;
use api::auth::table;
use common::ids::{KeyId, UserId};
use common::store::{StoreError, get_row};

impl KeyAdmin {
    /// Returns whether the key is in the user's list. The key itself is not read, so a key of another user takes the
    /// same call as one that does not exist.
    pub(crate) async fn is_owned_by(&self, key_id: KeyId, user: UserId) -> Result<bool, StoreError> {
        Ok(get_row(&self.client, &self.table, table::user_row(user, key_id)).await?.is_some())
    }
}
