//! Keys as text for people.

use admin::keys::document::{KeyWithText, RevokedKey, RotatedKey};
use auth::{KeyRecord, KeyStatus};
use types::ids::UserId;
use types::timestamp::Timestamp;

use crate::text::{minute, table};

const AFTER_REVOCATION: &str =
    "its next request is refused. This cannot be undone; `marketctl keys create` creates a new key.";

pub(super) fn created(key: &KeyWithText<'_>) -> String {
    let KeyRecord { key_id, user_id, .. } = key.record;
    format!("Key {key_id} of user {user_id} is ready.\n\n{}", text_once(key))
}

pub(super) fn rotated(rotated: &RotatedKey<'_>) -> String {
    let RotatedKey { key, old_key_id: old, old_expires_at, in_doubt } = rotated;
    let KeyRecord { key_id, user_id, .. } = key.record;
    let became = match old_expires_at {
        _ if *in_doubt => format!("It is not known whether key {key_id} of user {user_id} replaces key {old}."),
        Some(at) => format!("Key {key_id} of user {user_id} replaces key {old}, which is accepted until {at}."),
        None => format!("Key {old} is revoked. Key {key_id} of user {user_id} replaces it."),
    };
    format!("{became}\n\n{}", text_once(key))
}

pub(super) fn updated(key: &KeyRecord) -> String {
    let KeyRecord { key_id, user_id, tier, limit, limit_override, .. } = key;
    let source = if limit_override.is_some() { "its own limit" } else { "as its tier says" };
    format!(
        "Key {key_id} of user {user_id} is changed. Tier {tier}: {limit} requests per minute for each scope, {source}."
    )
}

pub(super) fn revoked(key: &KeyRecord) -> String {
    format!("Key {} of user {} is revoked: {AFTER_REVOCATION}", key.key_id, key.user_id)
}

pub(super) fn revoked_unread(key: &RevokedKey) -> String {
    format!("Key {} is revoked, although its row cannot be read: {AFTER_REVOCATION}", key.key_id)
}

pub(super) fn list(user: UserId, keys: &[KeyRecord], now: Timestamp) -> String {
    if keys.is_empty() {
        return format!(
            "User {user} has no keys. Create one:\n\n    marketctl keys create --user {user} --scope catalog:read"
        );
    }
    let header = ["KEY ID", "NAME", "TIER", "SCOPES", "STATUS", "CREATED", "EXPIRES", "LAST USED", "LAST 4"];
    table(header, keys.iter().map(|key| row(key, now)))
}

fn text_once(key: &KeyWithText<'_>) -> String {
    let KeyRecord { tier, limit, expires_at, .. } = key.record;
    let expiry = expires_at.map_or_else(|| "never expires".to_owned(), |at| format!("expires {at}"));
    format!(
        "    {}\n\n\
         Scopes: {}.\n\
         Tier {}: {limit} requests per minute for each scope. The key {expiry}.\n\
         The key is shown only this once: store it now. To try it, set API_KEY to the key and BASE_URL to the API's address:\n\n\
         \x20   curl -H \"Authorization: Bearer $API_KEY\" \"$BASE_URL/v1/public/me\"",
        key.api_key,
        scopes(key.record),
        tier.as_str(),
    )
}

fn row(key: &KeyRecord, now: Timestamp) -> [String; 9] {
    [
        key.key_id.to_string(),
        key.name.clone().unwrap_or_else(|| "-".to_owned()),
        key.tier.as_str().to_owned(),
        scopes(key),
        status(key, now).to_owned(),
        minute(Some(key.created_at)),
        minute(key.expires_at),
        minute(key.last_used_at),
        key.last4.clone(),
    ]
}

pub(super) fn scopes(key: &KeyRecord) -> String {
    key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ")
}

pub(super) fn status(key: &KeyRecord, now: Timestamp) -> &'static str {
    match key.status {
        KeyStatus::Active if !key.is_live(now) => "expired",
        status => status.as_str(),
    }
}
