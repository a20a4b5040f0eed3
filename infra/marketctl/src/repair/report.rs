//! What a repair found and did, for programs and for people.

use accounts::OrderFindings;
use admin::keys::KeyProblem;
use common::ids::{EndpointId, KeyId, UserId};
use common::records::PublicItem;
use common::resources::Table;
use common::rows::Unreadable;
use market::Record;
use serde::Serialize;
use terminal::table;
use webhooks::store::EndpointProblem;

use super::RepairReport;
use super::rows::{EndpointsReport, KeysReport};
use super::streams::StreamReport;

/// The most entities that people see of a dry run. Afterwards nothing else would name the rest.
const MAX_NAMED: usize = 20;
/// Where deliveries were found.
const DELIVERIES: &str = "deliveries";
/// What a row says of something that was not found.
const NONE: &str = "0";

/// The result of a repair. What belongs to a table that was not looked at is left out: `null`, or an empty list.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether nothing had to be repaired.
    in_line: bool,
    dry_run: bool,
    examined: Vec<&'static str>,
    not_examined: Vec<&'static str>,
    streams: Vec<StreamLine>,
    orders: Option<OrderCounts>,
    keys: Option<Keys>,
    webhooks: Option<Webhooks>,
    /// The entities with which something was wrong, so that the marketplace can send them again. Of the records of a
    /// stream only the first thousand are here.
    affected: Vec<Affected>,
    /// Users whose orders could not be repaired.
    pub(super) failed: Vec<FailedUser>,
    /// Rows of keys and webhooks that cannot be read. They were left as they are.
    pub(super) unreadable: Vec<UnreadableRow>,
}

#[derive(Debug, Serialize)]
struct StreamLine {
    stream: &'static str,
    head_behind_log: bool,
    entry_missing: bool,
    base_unusable: bool,
    differing_records: u64,
    /// The number with which it began anew, if it did.
    began_at: Option<u64>,
    /// The number of records of its new base, if one was written.
    base_records: Option<u64>,
}

#[derive(Debug, Serialize)]
struct OrderCounts {
    users: u64,
    authorities_without_order: u64,
    orders_without_authority: u64,
    versions_apart: u64,
    misnumbered: u64,
    wrong_summaries: u64,
    wrong_hours: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct FailedUser {
    pub(super) user_id: UserId,
    pub(super) reason: String,
}

/// An entity whose messages should be sent again.
#[derive(Debug, Serialize)]
struct Affected {
    table: &'static str,
    id: String,
    /// What to send: the newest message of this item, listing or order, or of each order of this user.
    send_again: &'static str,
}

impl Report {
    pub(super) fn new(found: RepairReport, dry_run: bool) -> Self {
        let in_line = found.is_in_line();
        let affected = affected(&found);
        let RepairReport { examined, streams, orders, keys, endpoints } = found;
        let (examined, not_examined): (Vec<Table>, Vec<Table>) =
            Table::ALL.into_iter().partition(|table| examined.contains(table));
        let names = |tables: &[Table]| tables.iter().map(|table| table.suffix()).collect();
        let has = |table| examined.contains(&table);
        let failed = orders.failed.into_iter();
        let failed = failed.map(|(user_id, error)| FailedUser { user_id, reason: error.to_string() }).collect();
        let OrderFindings { without_authority, other_version, misnumbered, summaries, hours } = orders.found;
        Self {
            in_line,
            dry_run,
            examined: names(&examined),
            not_examined: names(&not_examined),
            affected,
            streams: streams.iter().map(StreamLine::new).collect(),
            orders: has(Table::Accounts).then_some(OrderCounts {
                users: orders.users,
                authorities_without_order: orders.without_record,
                orders_without_authority: without_authority,
                versions_apart: other_version,
                misnumbered,
                wrong_summaries: summaries,
                wrong_hours: hours,
            }),
            keys: has(Table::Keys).then(|| Keys::new(&keys)),
            webhooks: has(Table::Webhooks).then(|| Webhooks::new(&endpoints)),
            failed,
            unreadable: unreadable(keys, endpoints),
        }
    }

    /// Returns whether nothing had to be left as it is.
    pub(super) fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.unreadable.is_empty()
    }

    /// Returns whether something is still to be repaired.
    pub(super) fn is_left(&self) -> bool {
        self.dry_run && !self.in_line
    }

    /// Returns the report for people: a table of what was wrong, the entities with which it was, and a sentence.
    pub(super) fn text(&self) -> String {
        let streams = self.streams.iter().flat_map(StreamLine::rows);
        let orders = self.orders.iter().flat_map(OrderCounts::rows);
        let keys = self.keys.iter().flat_map(Keys::rows);
        let endpoints = self.webhooks.iter().flat_map(Webhooks::rows);
        let rows: Vec<[String; 3]> =
            streams.chain(orders).chain(keys).chain(endpoints).filter(|[_, _, found]| found != NONE).collect();
        let keys = self.keys.iter().flat_map(Keys::lines);
        let endpoints = self.webhooks.iter().flat_map(Webhooks::lines);
        let named: Vec<String> = keys.chain(endpoints).chain(self.affected.iter().map(Affected::line)).collect();
        let has_lost_only_calls = rows.iter().all(|[of, _, _]| of == DELIVERIES) && named.is_empty();
        let sentence = match (self.in_line, self.dry_run) {
            (true, _) => "Everything there is in line.",
            (false, true) => "Nothing was written.",
            (false, false) if has_lost_only_calls => "These deliveries are attempted within minutes.",
            (false, false) => {
                "It was brought in line. Have the marketplace send its latest messages again, and tell the owners of \
                 the keys and endpoints."
            }
        };
        let mut parts = Vec::new();
        if !rows.is_empty() {
            parts.push(table(["WHERE", "WHAT", "FOUND"], rows));
        }
        if let Some(more) = named.len().checked_sub(MAX_NAMED).filter(|more| self.dry_run && *more > 0) {
            let shown = named[..MAX_NAMED].join("\n");
            parts.push(format!("{shown}\n… and {more} more; --json lists them"));
        } else if !named.is_empty() {
            parts.push(named.join("\n"));
        }
        parts.push(format!("{} {sentence}", self.looked_at()));
        parts.join("\n\n")
    }

    /// Says what was looked at, and how much there was.
    fn looked_at(&self) -> String {
        let orders = self.orders.as_ref().map(|orders| format!("users with orders: {}", orders.users));
        let keys = self.keys.as_ref().map(|keys| format!("keys: {}", keys.keys));
        let endpoints = self.webhooks.as_ref().map(|webhooks| format!("endpoints: {}", webhooks.endpoints));
        let counts: Vec<String> = [orders, keys, endpoints].into_iter().flatten().collect();
        let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
        let rest = if self.not_examined.is_empty() {
            String::new()
        } else {
            format!(" Not examined: {}.", self.not_examined.join(", "))
        };
        format!("Examined: {}{counts}.{rest}", self.examined.join(", "))
    }
}

/// Returns the entities of streams and orders with which something was wrong.
fn affected(found: &RepairReport) -> Vec<Affected> {
    let market = Table::Market.suffix();
    let records = found.streams.iter().flat_map(|stream| {
        let send_again = if stream.stream == PublicItem::STREAM { "item" } else { "listing" };
        stream.differing.iter().map(move |id| Affected { table: market, id: id.clone(), send_again })
    });
    let accounts = Table::Accounts.suffix();
    let orders = found.orders.missing.iter();
    let orders = orders.map(|id| Affected { table: accounts, id: id.to_string(), send_again: "order" });
    let failed = found.orders.failed.iter().map(|(user, _)| user);
    let users = found.orders.affected.iter().chain(failed);
    let users = users.map(|id| Affected { table: accounts, id: id.to_string(), send_again: "orders" });
    records.chain(orders).chain(users).collect()
}

impl Affected {
    fn line(&self) -> String {
        let Self { table, id, send_again } = self;
        match *send_again {
            "orders" => format!("{table}: user {id}: send the orders again"),
            kind => format!("{table}: {kind} {id}: send it again"),
        }
    }
}

impl OrderCounts {
    fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        let counts = [
            ("authorities without an order", self.authorities_without_order),
            ("orders without an authority", self.orders_without_authority),
            ("authorities with another version", self.versions_apart),
            ("orders with a wrong number", self.misnumbered),
            ("wrong summaries", self.wrong_summaries),
            ("months with wrong hours", self.wrong_hours),
        ];
        counts.into_iter().map(|(what, count)| ["orders".to_owned(), what.to_owned(), count.to_string()])
    }
}

impl StreamLine {
    fn new(report: &StreamReport) -> Self {
        let StreamReport { stream, found, began_at, base_records, .. } = *report;
        Self {
            stream,
            head_behind_log: found.head_behind_log,
            entry_missing: found.entry_missing,
            base_unusable: found.base_unusable,
            differing_records: found.differing_records,
            began_at,
            base_records,
        }
    }

    fn rows(&self) -> Vec<[String; 3]> {
        // Without a finding, a row is left out like any other.
        let yes_or_no = |found: bool| String::from(if found { "yes" } else { NONE });
        let mut rows = vec![
            ("head behind its log", yes_or_no(self.head_behind_log)),
            ("entry of the head missing", yes_or_no(self.entry_missing)),
            ("base missing or unusable", yes_or_no(self.base_unusable)),
            ("records other than their entities", self.differing_records.to_string()),
        ];
        rows.extend(self.began_at.map(|seq| ("began anew at", seq.to_string())));
        rows.into_iter().map(|(what, found)| [self.stream.to_owned(), what.to_owned(), found]).collect()
    }
}

/// What was found of keys. It names each of them, because somebody has to tell its owner.
#[derive(Debug, Serialize)]
struct Keys {
    keys: u64,
    found: Vec<FoundKey>,
}

#[derive(Debug, Serialize)]
struct FoundKey {
    problem: KeyProblem,
    key_id: KeyId,
    /// Its owner, if that is known.
    user_id: Option<UserId>,
}

/// What was found of webhooks. It names each endpoint, too.
#[derive(Debug, Serialize)]
struct Webhooks {
    endpoints: u64,
    found: Vec<FoundEndpoint>,
    /// How many pending deliveries had no wake-up. They are attempted within minutes.
    deliveries_without_wake_up: u64,
}

#[derive(Debug, Serialize)]
struct FoundEndpoint {
    problem: EndpointProblem,
    endpoint_id: EndpointId,
    user_id: UserId,
}

/// A row that was left as it is.
#[derive(Debug, Serialize)]
pub(super) struct UnreadableRow {
    pub(super) row: String,
    pub(super) what: String,
}

impl Keys {
    fn new(report: &KeysReport) -> Self {
        let found = report.found.iter();
        let found = found.map(|(&(problem, key_id), &user_id)| FoundKey { problem, key_id, user_id });
        Self { keys: report.keys, found: found.collect() }
    }

    /// Returns a row for each problem, with how many keys have it.
    fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        KeyProblem::ALL.into_iter().map(move |problem| {
            let what = match problem {
                KeyProblem::RotationCut => "replaced, and still active",
                KeyProblem::SuccessorLost => "replaced, and the one that replaced it is gone",
                KeyProblem::NotFindable => "accepted, but not found by id, by user, or by both",
                KeyProblem::Lost => "gone, but found by id or user",
                KeyProblem::RevokedSince => "revoked or replaced since, and still active",
            };
            let count = self.found.iter().filter(|found| found.problem == problem).count();
            ["keys".to_owned(), what.to_owned(), count.to_string()]
        })
    }

    /// Returns a line for each key with a problem.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|FoundKey { problem, key_id, user_id }| match user_id {
            Some(user_id) => format!("{problem}: key {key_id} of user {user_id}"),
            None => format!("{problem}: key {key_id}"),
        })
    }
}

impl Webhooks {
    fn new(report: &EndpointsReport) -> Self {
        let found = report.found.iter().map(|found| FoundEndpoint {
            problem: found.problem,
            endpoint_id: found.endpoint_id,
            user_id: found.account_id,
        });
        let deliveries_without_wake_up = report.without_wake_up;
        Self { endpoints: report.endpoints, found: found.collect(), deliveries_without_wake_up }
    }

    /// Returns a row for each problem, with how many endpoints or deliveries have it.
    fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        let unwatched = self.deliveries_without_wake_up.to_string();
        let of_endpoints = EndpointProblem::ALL.into_iter().map(move |problem| {
            let what = match problem {
                EndpointProblem::RemovalCut => "removed and still there",
                EndpointProblem::SwitchOffCut => "switched off and still on",
                EndpointProblem::NoticeMissing => "switched off without a notice",
                EndpointProblem::NotFindable => "not found by id",
                EndpointProblem::Lost => "gone, but not noted as removed",
            };
            let count = self.found.iter().filter(|found| found.problem == problem).count();
            ["endpoints".to_owned(), what.to_owned(), count.to_string()]
        });
        of_endpoints.chain([[DELIVERIES.to_owned(), "pending, and nothing called for them".to_owned(), unwatched]])
    }

    /// Returns a line for each endpoint with a problem.
    fn lines(&self) -> impl Iterator<Item = String> {
        let line = |found: &FoundEndpoint| {
            format!("{}: endpoint {} of user {}", found.problem, found.endpoint_id, found.user_id)
        };
        self.found.iter().map(line)
    }
}

/// Returns the rows that were left as they are.
fn unreadable(keys: KeysReport, endpoints: EndpointsReport) -> Vec<UnreadableRow> {
    let rows = keys.unreadable.into_iter().chain(endpoints.unreadable);
    rows.map(|Unreadable { row, what }| UnreadableRow { row, what }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use std::str::FromStr;

    use common::store::StoreError;
    use serde_json::json;
    use webhooks::store::EndpointFinding;

    use crate::repair::rows::OrdersReport;
    use crate::repair::streams::StreamFindings;

    fn id_text(digit: u8) -> String {
        format!("00000000-0000-0000-0000-00000000000{digit}")
    }

    fn id<T: FromStr<Err: Debug>>(digit: u8) -> T {
        id_text(digit).parse().unwrap()
    }

    #[test]
    fn the_document_has_everything_that_was_found() {
        let user = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
        let found = StreamFindings { entry_missing: true, differing_records: 2, ..StreamFindings::default() };
        let differing = vec!["l1".to_owned(), "l2".to_owned()];
        let stream = StreamReport { stream: "listings", found, differing, began_at: Some(7), base_records: Some(3) };
        let orders = OrdersReport {
            users: 1,
            without_record: 1,
            missing: vec![id(4)],
            affected: [id(5)].into(),
            found: OrderFindings { misnumbered: 5, ..OrderFindings::default() },
            failed: vec![(user.parse().unwrap(), StoreError::Conflict)],
        };
        let found = [((KeyProblem::RotationCut, id(7)), Some(id(8))), ((KeyProblem::Lost, id(7)), None)].into();
        let keys = KeysReport { keys: 9, found, unreadable: Vec::new() };
        let found = EndpointFinding { problem: EndpointProblem::NoticeMissing, endpoint_id: id(1), account_id: id(2) };
        let unreadable = vec![Unreadable { row: "endpoint#1 account".to_owned(), what: "account_id".to_owned() }];
        let endpoints = EndpointsReport { endpoints: 3, found: [found].into(), without_wake_up: 6, unreadable };
        let examined = Table::ALL.to_vec();
        let report = Report::new(RepairReport { examined, streams: vec![stream], orders, keys, endpoints }, false);
        let expected = json!({
            "in_line": false,
            "dry_run": false,
            "examined": ["keys", "market", "accounts", "webhooks"],
            "not_examined": [],
            "affected": [
                { "table": "market", "id": "l1", "send_again": "listing" },
                { "table": "market", "id": "l2", "send_again": "listing" },
                { "table": "accounts", "id": id_text(4), "send_again": "order" },
                { "table": "accounts", "id": id_text(5), "send_again": "orders" },
                { "table": "accounts", "id": user, "send_again": "orders" },
            ],
            "streams": [{
                "stream": "listings", "head_behind_log": false, "entry_missing": true, "base_unusable": false,
                "differing_records": 2, "began_at": 7, "base_records": 3,
            }],
            "orders": {
                "users": 1, "authorities_without_order": 1, "orders_without_authority": 0, "versions_apart": 0,
                "misnumbered": 5, "wrong_summaries": 0, "wrong_hours": 0,
            },
            "keys": { "keys": 9, "found": [
                { "problem": "rotation_cut", "key_id": id_text(7), "user_id": id_text(8) },
                { "problem": "lost", "key_id": id_text(7), "user_id": null },
            ] },
            "webhooks": { "endpoints": 3, "found": [
                { "problem": "notice_missing", "endpoint_id": id_text(1), "user_id": id_text(2) },
            ], "deliveries_without_wake_up": 6 },
            "failed": [{ "user_id": user, "reason": "transaction conflict" }],
            "unreadable": [{ "row": "endpoint#1 account", "what": "account_id" }],
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        let text = report.text();
        let key = format!("\nrotation_cut: key {} of user {}\nlost: key {}\n", id_text(7), id_text(8), id_text(7));
        assert!(text.contains(&key) && text.ends_with("tell the owners of the keys and endpoints."), "{text}");
        assert!(text.contains("market: listing l1: send it again\n") && !text.contains("wrong summaries"), "{text}");
        assert!(!report.is_complete());
    }

    #[test]
    fn people_are_told_what_becomes_of_deliveries_for_which_nothing_called() {
        let endpoints = EndpointsReport { endpoints: 3, without_wake_up: 6, ..EndpointsReport::default() };
        let found = RepairReport { examined: vec![Table::Webhooks], endpoints, ..RepairReport::default() };
        let text = Report::new(found, false).text();
        assert!(text.contains("deliveries  pending, and nothing called for them  6"), "{text}");
        assert!(text.ends_with(" These deliveries are attempted within minutes."), "{text}");
    }
}
