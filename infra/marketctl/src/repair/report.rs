//! What a repair found and did, for programs and for people.

use accounts::OrderFindings;
use admin::keys::KeyProblem;
use common::ids::{EndpointId, KeyId, UserId};
use common::rows::Unreadable;
use serde::Serialize;
use terminal::table;
use webhooks::store::EndpointProblem;

use super::RepairReport;
use super::rows::{EndpointsReport, KeysReport};
use super::streams::StreamReport;

/// The result of a repair.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether nothing had to be repaired.
    in_line: bool,
    dry_run: bool,
    streams: Vec<StreamLine>,
    orders: OrderCounts,
    keys: Keys,
    webhooks: Endpoints,
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
    wrong_marks: u64,
    unmarked_months: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct FailedUser {
    pub(super) user_id: UserId,
    pub(super) reason: String,
}

impl Report {
    pub(super) fn new(found: RepairReport, dry_run: bool) -> Self {
        let in_line = found.is_in_line();
        let RepairReport { streams, orders, keys, endpoints } = found;
        let failed = orders.failed.into_iter();
        let failed = failed.map(|(user_id, error)| FailedUser { user_id, reason: error.to_string() }).collect();
        let OrderFindings { without_authority, other_version, misnumbered, summaries, marks, unmarked_months } =
            orders.found;
        Self {
            in_line,
            dry_run,
            streams: streams.iter().map(StreamLine::new).collect(),
            orders: OrderCounts {
                users: orders.users,
                authorities_without_order: orders.without_record,
                orders_without_authority: without_authority,
                versions_apart: other_version,
                misnumbered,
                wrong_summaries: summaries,
                wrong_marks: marks,
                unmarked_months,
            },
            keys: Keys::new(&keys),
            webhooks: Endpoints::new(&endpoints),
            failed,
            unreadable: unreadable(keys, endpoints),
        }
    }

    /// Returns whether nothing had to be left as it is.
    pub(super) fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.unreadable.is_empty()
    }

    /// Returns the report for people: a table of what was found, the keys and endpoints among that, and a sentence.
    pub(super) fn text(&self) -> String {
        let OrderCounts { users, authorities_without_order, orders_without_authority, versions_apart, .. } =
            &self.orders;
        let OrderCounts { misnumbered, wrong_summaries, wrong_marks, unmarked_months, .. } = &self.orders;
        let streams = self.streams.iter().flat_map(StreamLine::rows);
        let orders = [
            ("authorities without an order", authorities_without_order),
            ("orders without an authority", orders_without_authority),
            ("authorities with another version", versions_apart),
            ("orders with a wrong number", misnumbered),
            ("wrong summaries", wrong_summaries),
            ("months with wrong marks", wrong_marks),
            ("busy months without marks", unmarked_months),
        ];
        let orders = orders.map(|(what, count)| ["orders".to_owned(), what.to_owned(), count.to_string()]);
        let rows = streams.chain(orders).chain(self.keys.rows()).chain(self.webhooks.rows());
        let rows = table(["WHERE", "WHAT", "FOUND"], rows);
        let named: Vec<String> = self.keys.lines().chain(self.webhooks.lines()).collect();
        let sentence = match (self.in_line, self.dry_run) {
            (true, _) => "Everything is in line.",
            (false, true) => "Nothing was written. Stop all writers, then run it without --dry-run.",
            (false, false) => {
                "It was brought in line. Have the marketplace send its latest messages again, and tell the owners of \
                 the keys and endpoints."
            }
        };
        let (keys, endpoints) = (self.keys.keys, self.webhooks.endpoints);
        let end = format!("Users with orders: {users}; keys: {keys}; endpoints: {endpoints}. {sentence}");
        if named.is_empty() { format!("{rows}\n\n{end}") } else { format!("{rows}\n\n{}\n\n{end}", named.join("\n")) }
    }
}

impl StreamLine {
    fn new(report: &StreamReport) -> Self {
        let StreamReport { stream, found, began_at, base_records } = *report;
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
        let yes_or_no = |found: bool| String::from(if found { "yes" } else { "no" });
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

/// What was found of webhook endpoints. It names each of them, too.
#[derive(Debug, Serialize)]
struct Endpoints {
    endpoints: u64,
    found: Vec<FoundEndpoint>,
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
                KeyProblem::NotFindable => "accepted, but not found by id or user",
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

impl Endpoints {
    fn new(report: &EndpointsReport) -> Self {
        let found = report.found.iter().map(|found| FoundEndpoint {
            problem: found.problem,
            endpoint_id: found.endpoint_id,
            user_id: found.account_id,
        });
        Self { endpoints: report.endpoints, found: found.collect() }
    }

    /// Returns a row for each problem, with how many endpoints have it.
    fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        EndpointProblem::ALL.into_iter().map(move |problem| {
            let what = match problem {
                EndpointProblem::RemovalCut => "removed and still there",
                EndpointProblem::SwitchOffCut => "switched off and still on",
                EndpointProblem::NoticeMissing => "switched off without a notice",
                EndpointProblem::NotFindable => "not found by id",
                EndpointProblem::Lost => "gone, but not noted as removed",
            };
            let count = self.found.iter().filter(|found| found.problem == problem).count();
            ["endpoints".to_owned(), what.to_owned(), count.to_string()]
        })
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
        let stream = StreamReport { stream: "listings", found, began_at: Some(7), base_records: Some(3) };
        let orders = OrdersReport {
            users: 1,
            without_record: 4,
            found: OrderFindings { misnumbered: 5, ..OrderFindings::default() },
            failed: vec![(user.parse().unwrap(), StoreError::Conflict)],
        };
        let found = [((KeyProblem::RotationCut, id(7)), Some(id(8))), ((KeyProblem::Lost, id(7)), None)].into();
        let keys = KeysReport { keys: 9, found, unreadable: Vec::new() };
        let found = EndpointFinding { problem: EndpointProblem::NoticeMissing, endpoint_id: id(1), account_id: id(2) };
        let unreadable = vec![Unreadable { row: "endpoint#1 account".to_owned(), what: "account_id".to_owned() }];
        let endpoints = EndpointsReport { endpoints: 3, found: [found].into(), unreadable };
        let report = Report::new(RepairReport { streams: vec![stream], orders, keys, endpoints }, false);
        let expected = json!({
            "in_line": false,
            "dry_run": false,
            "streams": [{
                "stream": "listings", "head_behind_log": false, "entry_missing": true, "base_unusable": false,
                "differing_records": 2, "began_at": 7, "base_records": 3,
            }],
            "orders": {
                "users": 1, "authorities_without_order": 4, "orders_without_authority": 0, "versions_apart": 0,
                "misnumbered": 5, "wrong_summaries": 0, "wrong_marks": 0, "unmarked_months": 0,
            },
            "keys": { "keys": 9, "found": [
                { "problem": "rotation_cut", "key_id": id_text(7), "user_id": id_text(8) },
                { "problem": "lost", "key_id": id_text(7), "user_id": null },
            ] },
            "webhooks": { "endpoints": 3, "found": [
                { "problem": "notice_missing", "endpoint_id": id_text(1), "user_id": id_text(2) },
            ] },
            "failed": [{ "user_id": user, "reason": "transaction conflict" }],
            "unreadable": [{ "row": "endpoint#1 account", "what": "account_id" }],
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        let text = report.text();
        let key = format!("\nrotation_cut: key {} of user {}\nlost: key {}\n", id_text(7), id_text(8), id_text(7));
        assert!(text.contains(&key) && text.ends_with("tell the owners of the keys and endpoints."), "{text}");
        assert!(!report.is_complete());
    }
}
