//! Keys as text for people.

use auth::{KeyRecord, KeyStatus};
use types::ids::{KeyId, UserId};
use types::timestamp::Timestamp;

use super::ShownOnce;
use crate::output::{minute, table};

pub(super) fn created(key: &ShownOnce<'_>) -> String {
    let KeyRecord { key_id, user_id, .. } = key.record;
    format!("Key {key_id} of user {user_id} is ready.\n\n{}", once(key))
}

pub(super) fn rotated(old: KeyId, key: &ShownOnce<'_>) -> String {
    let KeyRecord { key_id, user_id, .. } = key.record;
    format!("Key {old} is revoked; key {key_id} of user {user_id} takes its place.\n\n{}", once(key))
}

pub(super) fn revoked(key: &KeyRecord) -> String {
    format!(
        "Key {} of user {} is revoked: its next request is refused. There is no way back; `marketctl keys create` makes a new one.",
        key.key_id, key.user_id
    )
}

pub(super) fn list(user: UserId, keys: &[KeyRecord], now: Timestamp) -> String {
    if keys.is_empty() {
        return format!(
            "User {user} has no keys. Make one:\n\n    marketctl keys create --user {user} --scope catalog:read"
        );
    }
    let header = ["KEY ID", "NAME", "TIER", "SCOPES", "STATUS", "CREATED", "EXPIRES", "LAST USED", "ENDS IN"];
    table(header, keys.iter().map(|key| row(key, now)))
}

fn once(key: &ShownOnce<'_>) -> String {
    let KeyRecord { tier, limit, expires_at, .. } = key.record;
    let expiry = expires_at.map_or_else(|| "never expires".to_owned(), |at| format!("expires {at}"));
    format!(
        "    {}\n\n\
         It may do {} ({}, {limit} requests a minute each) and {expiry}.\n\
         This is the only time that the key is shown: store it now. With it in API_KEY and the API's address in BASE_URL:\n\n\
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

fn scopes(key: &KeyRecord) -> String {
    key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ")
}

fn status(key: &KeyRecord, now: Timestamp) -> &'static str {
    match key.status {
        KeyStatus::Active if !key.is_live(now) => "expired",
        status => status.as_str(),
    }
}
