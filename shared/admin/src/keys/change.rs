//! Changing a key that is in use, and replacing it by a new one.

use std::time::Duration;

use api::auth::table::{
    EXPIRES_AT, KeyRecord, KeyStatus, LIMIT_OVERRIDE, NAME, REPLACED_BY, REVOKED_AT, STATUS, SUCCESSOR_ID, TIER,
    hash_row,
};
use api::auth::{KeyHash, KeyText};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem, Update};
use common::backoff;
use common::ids::KeyId;
use common::resources::TTL;
use common::scope::Tier;
use common::store::{StoreError, n, retry_conflicts, s};
use common::timestamp::Timestamp;

use crate::keys::{AdminError, CONFLICT_ATTEMPTS, KeyAdmin, Making, NewKey, Reason, check_limit, check_name};

/// What changes about a key. What is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct KeyUpdate {
    /// 1 to 128 bytes.
    pub name: Option<String>,
    pub tier: Option<Tier>,
    pub limit: Option<LimitChange>,
}

/// A change of where a key's limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitChange {
    /// The key gets a limit of its own, in requests per minute and scope: at most
    /// [`MAX_LIMIT`](super::MAX_LIMIT); 0 stops it.
    Own(u32),
    /// The key follows its tier again.
    FollowTier,
}

impl KeyAdmin {
    /// Changes an active key by one conditional write, and returns it as it is now. Its next request is counted
    /// against the new limit; what it has used in this minute stays used. If somebody else changes the key at the same
    /// moment, the change is decided anew on what they wrote.
    pub async fn update(&self, key_id: KeyId, update: KeyUpdate) -> Result<KeyRecord, AdminError> {
        check_name(update.name.as_deref())?;
        check_limit(update.limit.and_then(LimitChange::own))?;
        let outcome = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            match self.update_once(key_id, &update).await {
                Err(AdminError::Store(error)) => Err(error),
                outcome => Ok(outcome),
            }
        });
        match outcome.await {
            Ok(outcome) => outcome,
            Err(StoreError::Conflict) => Err(AdminError::Changed),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a key and changes it. If the key changes in between, that is a conflict.
    async fn update_once(&self, key_id: KeyId, update: &KeyUpdate) -> Result<KeyRecord, AdminError> {
        let (hash, seen) = self.find(key_id).await?;
        if !seen.is_live(self.clock.now()) {
            return Err(AdminError::NotActive(key_id));
        }
        let next = update.applied_to(&seen);
        let request = self.client.update_item().table_name(&self.table).set_key(Some(hash_row(&hash)));
        let changed =
            conditional(request, &seen, &next).send().await.map_err(|error| match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => StoreError::Conflict,
                _ => StoreError::from(error),
            })?;
        let row = changed.attributes.ok_or_else(|| StoreError::corrupt("no attributes returned"))?;
        Ok(KeyRecord::from_row(&row)?)
    }
}

impl LimitChange {
    /// Returns the limit of its own that the key gets.
    fn own(self) -> Option<u32> {
        match self {
            Self::Own(limit) => Some(limit),
            Self::FollowTier => None,
        }
    }
}

impl KeyUpdate {
    fn applied_to(&self, seen: &KeyRecord) -> KeyRecord {
        let tier = self.tier.unwrap_or(seen.tier);
        let limit_override = self.limit.map_or(seen.limit_override, LimitChange::own);
        let limit = limit_override.unwrap_or(tier.limit());
        let name = self.name.clone().or_else(|| seen.name.clone());
        KeyRecord { name, tier, limit, limit_override, ..seen.clone() }
    }
}

/// Completes the update that turns `seen` into `next`, on condition that tier and limit are still those of `seen`.
fn conditional(request: UpdateItemFluentBuilder, seen: &KeyRecord, next: &KeyRecord) -> UpdateItemFluentBuilder {
    let mut set = vec!["#tier = :tier"];
    let mut request = request
        .expression_attribute_names("#status", STATUS)
        .expression_attribute_names("#tier", TIER)
        .expression_attribute_names("#override", LIMIT_OVERRIDE)
        .expression_attribute_values(":active", s(KeyStatus::Active.as_str()))
        .expression_attribute_values(":seen_tier", s(seen.tier.as_str()))
        .expression_attribute_values(":tier", s(next.tier.as_str()));
    // A name that stays is not written, because somebody else may be changing it.
    if next.name != seen.name
        && let Some(name) = &next.name
    {
        set.push("#name = :name");
        request = request.expression_attribute_names("#name", NAME).expression_attribute_values(":name", s(name));
    }
    let same_override = match seen.limit_override {
        Some(limit) => {
            request = request.expression_attribute_values(":seen_override", n(limit));
            "#override = :seen_override"
        }
        None => "attribute_not_exists(#override)",
    };
    let remove = match next.limit_override {
        Some(limit) => {
            set.push("#override = :override");
            request = request.expression_attribute_values(":override", n(limit));
            ""
        }
        None => " REMOVE #override",
    };
    request
        .update_expression(format!("SET {}{remove}", set.join(", ")))
        .condition_expression(format!("#status = :active AND #tier = :seen_tier AND {same_override}"))
        .return_values(ReturnValue::AllNew)
}

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
        if let Some(successor) = old.replaced_by {
            return Err(AdminError::Replaced { key_id, successor });
        }
        let reason = if overlap.is_zero() { Reason::Replacement } else { Reason::Overlap };
        let old_expires_at = end(&old, now, overlap);
        let (text, record) = self.fresh(like(&old))?;
        let Some(place) = self.place(&record, reason).await? else { return Ok(None) };
        let hash = text.hash();
        let mut writes = self.puts(&hash, &record, Some(&old_hash))?;
        writes.push(self.replacement(&old_hash, &old, old_expires_at, (&hash, record.key_id))?);
        writes.push(place);
        let doubt = match self.make(&writes, &hash).await? {
            Making::Made => {
                self.forget_later(key_id, Some(old.user_id)).await;
                None
            }
            Making::Refused => return Ok(None),
            Making::InDoubt(error) => Some(error),
        };
        Ok(Some(Rotated { text, record, old_expires_at, doubt }))
    }

    /// Returns the write that ends the old key, on condition that everything the new key has from it is as it was read.
    fn replacement(
        &self,
        hash: &str,
        old: &KeyRecord,
        expires_at: Option<Timestamp>,
        (replaced_by, successor): (&KeyHash, KeyId),
    ) -> Result<TransactWriteItem, StoreError> {
        let (end, value) = match expires_at {
            None => ("#status = :end, #revoked_at = :now", s(KeyStatus::Revoked.as_str())),
            Some(at) => ("#expires = :end", n(at.millis())),
        };
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(hash_row(hash)))
            .update_expression(format!("SET #replaced_by = :replaced_by, #successor = :successor, #ttl = :ttl, {end}"))
            .expression_attribute_names("#successor", SUCCESSOR_ID)
            .expression_attribute_values(":successor", s(successor.to_string()))
            .expression_attribute_names("#ttl", TTL)
            .expression_attribute_values(":ttl", self.removal())
            .expression_attribute_names("#replaced_by", REPLACED_BY)
            .expression_attribute_values(":replaced_by", s(replaced_by.hex()))
            .expression_attribute_values(":end", value);
        if expires_at.is_none() {
            update = update
                .expression_attribute_names("#revoked_at", REVOKED_AT)
                .expression_attribute_values(":now", n(self.clock.now().millis()));
        }
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
