//! Changing a key that is in use.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::ReturnValue;

use api::auth::table::{KeyRecord, KeyStatus, LIMIT_OVERRIDE, NAME, STATUS, TIER, hash_row};
use common::ids::KeyId;
use common::scope::Tier;
use common::store::{StoreError, n, retry_conflicts, s};

use super::{AdminError, CONFLICT_ATTEMPTS, KeyAdmin, check_limit, check_name};

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
