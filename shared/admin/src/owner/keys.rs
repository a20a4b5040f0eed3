//! A user's keys.

use std::time::Duration;

use super::Owner;
use crate::keys::{AdminError, KeyUpdate, NewKey, Rotated};
use api::auth::{KeyRecord, KeyText, Usage};
use common::ids::KeyId;
use common::rows::Rows;
use common::scope::{Scopes, Tier};
use common::timestamp::Timestamp;

impl Owner<'_> {
    /// Creates a key of the free tier. Other tiers and limits are for operators to give.
    pub async fn create_key(
        &self,
        name: Option<String>,
        scopes: Scopes,
        expires_at: Option<Timestamp>,
    ) -> Result<(KeyText, KeyRecord), AdminError> {
        let (user_id, tier) = (self.user, Tier::Free);
        self.keys.create(NewKey { user_id, name, tier, limit_override: None, scopes, expires_at }).await
    }

    /// Returns the keys, oldest first, and those that cannot be read.
    pub async fn list_keys(&self) -> Result<Rows<KeyRecord>, AdminError> {
        self.keys.list(self.user).await
    }

    /// Returns a key, and how it was used.
    pub async fn show_key(&self, id: KeyId) -> Result<(KeyRecord, Usage), AdminError> {
        self.check_key(id).await?;
        self.keys.show(id).await
    }

    pub async fn rename_key(&self, id: KeyId, name: String) -> Result<KeyRecord, AdminError> {
        self.check_key(id).await?;
        self.keys.update(id, KeyUpdate { name: Some(name), ..KeyUpdate::default() }).await
    }

    /// Replaces a key by a new one. The old one is accepted for as long as `overlap` says.
    pub async fn rotate_key(&self, id: KeyId, overlap: Duration) -> Result<Rotated, AdminError> {
        self.check_key(id).await?;
        self.keys.rotate(id, overlap).await
    }

    /// Revokes a key. Returns it, or `None` if its row cannot be read.
    pub async fn revoke_key(&self, id: KeyId) -> Result<Option<KeyRecord>, AdminError> {
        self.check_key(id).await?;
        self.keys.revoke(id).await
    }

    async fn check_key(&self, id: KeyId) -> Result<(), AdminError> {
        if self.keys.is_owned_by(id, self.user).await? { Ok(()) } else { Err(AdminError::Unknown(id)) }
    }
}
