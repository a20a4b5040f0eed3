//! One key with everything that is known of it, as text for people.

use admin::keys::document::KeyWithUsage;
use auth::{DayUse, KeyRecord, Usage};
use types::scope::Scope;
use types::timestamp::Timestamp;

use super::show::{scopes, status};
use crate::text::{minute, printable, table};

const SCOPES: usize = Scope::ALL.len();
/// The day, each scope, and all scopes.
const COLUMNS: usize = SCOPES + 2;

pub(super) fn shown(key: &KeyWithUsage<'_>, now: Timestamp) -> String {
    format!("{}\n\n{}", details(key.record, now), usage(key.usage))
}

pub(super) fn identified(key: &KeyRecord, now: Timestamp) -> String {
    let id = key.key_id;
    let next = if key.is_live(now) {
        format!("It is accepted. `marketctl keys revoke {id}` ends it, `marketctl keys rotate {id}` replaces it.")
    } else {
        "It is not accepted any more.".to_owned()
    };
    format!("The text is this key:\n\n{}\n\n{next}", details(key, now))
}

fn details(key: &KeyRecord, now: Timestamp) -> String {
    let name = key.name.as_deref().map_or_else(|| "-".to_owned(), printable);
    let lines = [
        ("Key", key.key_id.to_string()),
        ("User", key.user_id.to_string()),
        ("Name", name),
        ("Last 4 characters", key.last4.clone()),
        ("Status", status(key, now).to_owned()),
        ("Tier", key.tier.as_str().to_owned()),
        ("Scopes", scopes(key)),
        ("Requests per minute", format!("{} for each scope", key.limit)),
        ("Created", minute(Some(key.created_at))),
        ("Expires", minute(key.expires_at)),
        ("Last used", minute(key.last_used_at)),
    ];
    lines.map(|(what, value)| format!("{what:<21}{value}")).join("\n")
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
    let days = usage.days.chunk_by(|one, other| one.day == other.day).map(|day| row(&day[0].day, day));
    table(header, days.chain([row("all days", &usage.days)]))
}

/// Returns how many requests were made in each scope, and in all of them.
fn row(day: &str, uses: &[DayUse]) -> [String; COLUMNS] {
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
