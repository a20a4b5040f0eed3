//! Looking up one key.

use api::auth::table::{KeyRecord, hash_row};
use api::auth::{KeyText, Usage};
use common::ids::KeyId;

use super::{AdminError, KeyAdmin};

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
