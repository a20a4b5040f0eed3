//! Keys as text for people.

use admin::keys::document::{KeyDocument, KeyWithText, KeyWithUsage, RevokedKey, RevokedKeys, RotatedKey, UsedKey};
use api::auth::{DayUse, KeyRecord, KeyStatus, Usage};
use common::ids::UserId;
use common::scope::Scope;
use common::timestamp::Timestamp;
use terminal::{details as facts, second, table};

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
    let since = key.revoked_at.map(|at| format!(" since {}", second(Some(at)))).unwrap_or_default();
    format!("Key {} of user {} is revoked{since}: {AFTER_REVOCATION}", key.key_id, key.user_id)
}

pub(super) fn revoked_unread(key: &RevokedKey) -> String {
    format!("Key {} is revoked, although its row cannot be read: {AFTER_REVOCATION}", key.key_id)
}

pub(super) fn all_revoked(RevokedKeys { user_id, revoked }: &RevokedKeys) -> String {
    if revoked.is_empty() {
        return format!("User {user_id}: no key had to be revoked.");
    }
    let ids: Vec<String> = revoked.iter().map(ToString::to_string).collect();
    format!("These keys of user {user_id} are revoked now:\n\n    {}", ids.join("\n    "))
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

/// Lists keys of all users with what they have used, of `all` that there are.
pub(super) fn used(keys: &[UsedKey<'_>], all: usize, now: Timestamp) -> String {
    if keys.is_empty() {
        return "There are no keys.".to_owned();
    }
    let header = ["KEY ID", "USER ID", "NAME", "TIER", "LIMIT", "STATUS", "TODAY", "LAST USED"];
    let rows = table(
        header,
        keys.iter().map(|UsedKey { key, requests_today }| {
            let [key_id, name, tier, _, status, _, _, last_used, _] = row(key.record, now);
            let (user, limit) = (key.record.user_id.to_string(), limit(key.record));
            [key_id, user, name, tier, limit, status, requests_today.to_string(), last_used]
        }),
    );
    let more = match all - keys.len() {
        0 => String::new(),
        more => format!(" {more} more keys are left out; --limit lists them."),
    };
    format!(
        "{rows}\n\nTODAY counts requests since 00:00 UTC, without those to /me and those that were refused.{more} To see one day by day:\n\n    \
         marketctl keys show KEY_ID"
    )
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
        status(key, now),
        second(Some(key.created_at)),
        second(key.expires_at),
        second(key.last_used_at),
        key.last4.clone(),
    ]
}

/// Returns the key's limit, and whether it is its own.
fn limit(key: &KeyRecord) -> String {
    if key.limit_override.is_some() { format!("{} (its own)", key.limit) } else { key.limit.to_string() }
}

fn scopes(key: &KeyRecord) -> String {
    key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the status of a key, and since or until when.
fn status(key: &KeyRecord, now: Timestamp) -> String {
    match (key.status, key.expires_at) {
        (KeyStatus::Revoked, _) => match key.revoked_at {
            Some(at) => format!("revoked at {}", second(Some(at))),
            None => "revoked".to_owned(),
        },
        (KeyStatus::Active, _) if !key.is_live(now) => "expired".to_owned(),
        (KeyStatus::Active, Some(at)) if key.replaced_by.is_some() => {
            format!("replaced, accepted until {}", second(Some(at)))
        }
        (KeyStatus::Active, _) if key.limit == 0 => "active, limit 0".to_owned(),
        (KeyStatus::Active, _) => "active".to_owned(),
    }
}

const SCOPES: usize = Scope::ALL.len();
/// The day, each scope, and all scopes.
const COLUMNS: usize = SCOPES + 2;

pub(super) fn shown(shown: &KeyWithUsage<'_, KeyDocument<'_>>, now: Timestamp) -> String {
    format!("{}\n\n{}", details(shown.key.record, now), usage(shown.usage))
}

pub(super) fn identified(keys: &[KeyRecord], now: Timestamp) -> String {
    let live: Vec<String> = keys
        .iter()
        .filter(|key| key.is_live(now))
        .map(|key| format!("    marketctl keys revoke {}", key.key_id))
        .collect();
    let next = match live.as_slice() {
        [] => "None is accepted any more.".to_owned(),
        live => {
            format!("To end what is accepted, or `rotate` in place of `revoke` to replace it:\n\n{}", live.join("\n"))
        }
    };
    if let [key] = keys {
        return format!("The text has this key of this stack:\n\n{}\n\n{next}", details(key, now));
    }
    let header = ["KEY ID", "USER ID", "NAME", "STATUS", "LAST USED", "LAST 4"];
    let rows = keys.iter().map(|key| {
        let [key_id, name, _, _, status, _, _, last_used, last4] = row(key, now);
        [key_id, key.user_id.to_string(), name, status, last_used, last4]
    });
    format!("The text has these {} keys of this stack:\n\n{}\n\n{next}", keys.len(), table(header, rows))
}

fn details(key: &KeyRecord, now: Timestamp) -> String {
    facts([
        ("Key", key.key_id.to_string()),
        ("User", key.user_id.to_string()),
        ("Name", key.name.clone().unwrap_or_else(|| "-".to_owned())),
        ("Last 4 characters", key.last4.clone()),
        ("Status", status(key, now)),
        ("Replaced by", key.replaced_by.map_or_else(|| "-".to_owned(), |id| id.to_string())),
        ("Tier", key.tier.as_str().to_owned()),
        ("Scopes", scopes(key)),
        ("Requests per minute", format!("{} for each scope", limit(key))),
        ("Created", second(Some(key.created_at))),
        ("Expires", second(key.expires_at)),
        ("Last used", second(key.last_used_at)),
    ])
}

fn usage(usage: &Usage) -> String {
    if usage.days.is_empty() {
        return "No requests were counted.".to_owned();
    }
    let mut header = ["DAY (UTC)"; COLUMNS];
    for (cell, scope) in header[1..].iter_mut().zip(Scope::ALL) {
        *cell = scope.as_str();
    }
    header[COLUMNS - 1] = "ALL SCOPES";
    let days = usage.days.chunk_by(|one, other| one.day == other.day).map(|day| day_row(&day[0].day, day));
    table(header, days.chain([day_row("all days", &usage.days)]))
}

/// Returns how many requests were made in each scope, and in all of them.
fn day_row(day: &str, uses: &[DayUse]) -> [String; COLUMNS] {
    let requests =
        |scope: Scope| uses.iter().filter(move |day_use| day_use.scope == scope).map(|day_use| day_use.requests);
    let counts = Scope::ALL.map(|scope| requests(scope).sum::<u64>());
    std::array::from_fn(|column| match column {
        0 => day.to_owned(),
        column => counts.get(column - 1).copied().unwrap_or_else(|| counts.iter().sum()).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_shown_by_day_and_scope_with_their_totals() {
        let day_use = |day: &str, scope, requests| DayUse { day: day.to_owned(), scope, requests };
        let days = vec![
            day_use("2026-11-22", Scope::CatalogRead, 3),
            day_use("2026-11-22", Scope::WalletRead, 4),
            day_use("2026-11-20", Scope::CatalogRead, 1_000),
        ];
        let text = usage(&Usage { days });
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            vec!["2026-11-22", "3", "0", "0", "4", "7"],
            vec!["2026-11-20", "1000", "0", "0", "0", "1000"],
            vec!["all", "days", "1003", "0", "0", "4", "1007"],
        ];
        assert_eq!(rows, expected);
        let header = text.lines().next().unwrap();
        assert!(Scope::ALL.iter().all(|scope| header.contains(scope.as_str())), "{header}");
        assert_eq!(usage(&Usage::default()), "No requests were counted.");
    }
}
