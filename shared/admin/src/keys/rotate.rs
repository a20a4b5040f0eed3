//! Replacing a key by a new one.

use std::time::Duration;

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};

use api::auth::table::{EXPIRES_AT, KeyRecord, KeyStatus, LIMIT_OVERRIDE, NAME, REPLACED_BY, STATUS, TIER, hash_row};
use api::auth::{KeyHash, KeyText};
use common::backoff;
use common::ids::KeyId;
use common::store::{Attributes, StoreError, n, s};
use common::timestamp::Timestamp;

use super::{AdminError, CONFLICT_ATTEMPTS, KeyAdmin, Making, NewKey};

/// The longest time for which a replaced key is accepted beside the new one.
pub const MAX_OVERLAP: Duration = Duration::from_hours(7 * 24);

/// A key that takes the place of another one.
#[derive(Debug)]
pub struct Rotated {
    /// The new key's text. This is the only time that it is returned. The text is stored nowhere.
    pub text: KeyText,
    pub record: KeyRecord,
    /// Until when the old key is accepted, or `None` if it was revoked at once.
    pub old_expires_at: Option<Timestamp>,
    /// Why it is not known whether the rotation was made. If it was made, this text is the only one that is accepted in
    /// the end, so it is returned all the same.
    pub doubt: Option<StoreError>,
}

impl KeyAdmin {
    /// Replaces an active key by a new one with the same properties. One transaction creates the new key and ends the
    /// old one: at once if the overlap is zero, otherwise after the overlap or at the old key's own expiry, whichever
    /// comes first. Their rows name each other, so that a repair can complete a rotation of which a restore brought
    /// back only a part.
    ///
    /// The overlap is at most [`MAX_OVERLAP`]. A key that was already replaced cannot be replaced again: rotate its
    /// successor. If somebody else changes the key at the same moment, the rotation is decided anew on what they wrote.
    pub async fn rotate(&self, key_id: KeyId, overlap: Duration) -> Result<Rotated, AdminError> {
        if overlap > MAX_OVERLAP {
            return Err(AdminError::Invalid { field: "overlap", reason: "must be at most 7 days" });
        }
        for attempt in 0..CONFLICT_ATTEMPTS {
            if let Some(rotated) = self.rotate_once(key_id, overlap).await? {
                return Ok(rotated);
            }
            tokio::time::sleep(backoff::pause(attempt)).await;
        }
        Err(AdminError::Changed)
    }

    /// Reads a key and replaces it. Returns `None` if the key changed in between.
    async fn rotate_once(&self, key_id: KeyId, overlap: Duration) -> Result<Option<Rotated>, AdminError> {
        let (old_hash, stored) = self.find_row(key_id).await?;
        let (old, now) = (KeyRecord::from_row(&stored)?, self.clock.now());
        if !old.is_live(now) {
            return Err(AdminError::NotActive(key_id));
        }
        if let Some(successor) = Attributes(&stored).text(REPLACED_BY) {
            return Err(self.replaced(key_id, successor).await?);
        }
        let old_expires_at = end(&old, now, overlap);
        let (text, record) = self.fresh(like(&old))?;
        let hash = text.hash();
        let mut writes = self.puts(&hash, &record, Some(&old_hash))?;
        writes.push(self.replacement(&old_hash, &old, old_expires_at, &hash)?);
        let doubt = match self.make(&writes, &hash).await? {
            Making::Made => None,
            Making::Refused => return Ok(None),
            Making::InDoubt(error) => Some(error),
        };
        Ok(Some(Rotated { text, record, old_expires_at, doubt }))
    }

    /// Returns the error that names the key which replaced this one.
    async fn replaced(&self, key_id: KeyId, successor: &str) -> Result<AdminError, StoreError> {
        let successor = self.read(hash_row(successor)).await?.ok_or_else(|| StoreError::corrupt(REPLACED_BY))?;
        Ok(AdminError::Replaced { key_id, successor: successor.key_id })
    }

    /// Returns the write that ends the old key, on condition that everything the new key has from it is as it was read.
    fn replacement(
        &self,
        hash: &str,
        old: &KeyRecord,
        expires_at: Option<Timestamp>,
        replaced_by: &KeyHash,
    ) -> Result<TransactWriteItem, StoreError> {
        let (end, value) = match expires_at {
            None => ("#status = :end", s(KeyStatus::Revoked.as_str())),
            Some(at) => ("#expires = :end", n(at.millis())),
        };
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(hash_row(hash)))
            .update_expression(format!("SET #replaced_by = :replaced_by, {end}"))
            .expression_attribute_names("#replaced_by", REPLACED_BY)
            .expression_attribute_values(":replaced_by", s(replaced_by.hex()))
            .expression_attribute_values(":end", value);
        let mut conditions = vec!["attribute_not_exists(#replaced_by)".to_owned()];
        for (name, attribute, seen) in [
            ("status", STATUS, Some(s(old.status.as_str()))),
            ("tier", TIER, Some(s(old.tier.as_str()))),
            ("override", LIMIT_OVERRIDE, old.limit_override.map(n)),
            ("name", NAME, old.name.as_ref().map(s)),
            ("expires", EXPIRES_AT, old.expires_at.map(|at| n(at.millis()))),
        ] {
            update = update.expression_attribute_names(format!("#{name}"), attribute);
            if let Some(seen) = seen {
                conditions.push(format!("#{name} = :{name}"));
                update = update.expression_attribute_values(format!(":{name}"), seen);
            } else {
                conditions.push(format!("attribute_not_exists(#{name})"));
            }
        }
        let update = update.condition_expression(conditions.join(" AND ")).build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

/// Returns what a new key has from an old one. User and scopes of a key never change.
fn like(old: &KeyRecord) -> NewKey {
    let KeyRecord { user_id, name, tier, limit_override, scopes, expires_at, .. } = old.clone();
    NewKey { user_id, name, tier, limit_override, scopes, expires_at }
}

/// Returns until when the old key is accepted, or `None` if it is revoked at once.
fn end(old: &KeyRecord, now: Timestamp, overlap: Duration) -> Option<Timestamp> {
    if overlap.is_zero() {
        return None;
    }
    let end = now.plus_millis(i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX));
    Some(old.expires_at.map_or(end, |own| own.min(end)))
}
