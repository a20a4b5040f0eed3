//! `marketctl repair --unreadable`: lists the rows of webhooks that cannot be read, and brings back those that can be read
//! again. Nothing has to be stopped for it.

use admin::audit::Subject;
use admin::webhooks::RowRepair;
use common::ids::{EndpointId, UserId};
use common::timestamp::Timestamp;
use serde::Serialize;
use terminal::{Output, second, table};
use thiserror::Error;
use webhooks::store::{RowKind, UnreadableRow};

use super::REPAIR;
use super::progress::RepairProgress;
use crate::audit;
use crate::failure::CommandFailure;
use crate::session::Session;

/// The result of a repair.
#[derive(Debug, Serialize)]
struct RowsReport {
    dry_run: bool,
    /// The number of rows that were read.
    rows: u64,
    /// The number of rows that had been set aside and can be read again.
    brought_back: u64,
    unreadable: Vec<UnreadableDocument>,
}

#[derive(Debug, Serialize)]
struct UnreadableDocument {
    /// Its key.
    row: String,
    kind: RowKind,
    /// What cannot be read.
    what: String,
    user_id: Option<UserId>,
    endpoint_id: Option<EndpointId>,
    /// When a sweep or a drain looks at it next.
    next_wake_up: Option<Timestamp>,
}

/// There are rows that cannot be read.
#[derive(Debug, Error)]
#[error("rows that cannot be read: {0}")]
struct RowsLeft(usize);

impl From<RowsLeft> for CommandFailure {
    fn from(error: RowsLeft) -> Self {
        Self::new(
            error.to_string(),
            "They were left as they are. If a newer release wrote them, deploy it again, then run this again with its `marketctl`.",
        )
    }
}

pub(super) async fn run(session: &Session, dry_run: bool, output: Output) -> Result<(), CommandFailure> {
    let admin = session.webhooks().await?;
    let of = admin.about_rows().await?;
    let progress = RepairProgress::start();
    let found = admin.repair_rows(dry_run, |rows| progress.show_rows(rows, of, "rows of webhooks")).await?;
    drop(progress);
    if found.brought_back > 0 && !dry_run {
        audit::tell(session, REPAIR, [(None, Subject::default())]).await;
    }
    let report = RowsReport::new(found, dry_run);
    output.print(&report, RowsReport::text)?;
    let left = report.unreadable.len();
    if left == 0 { Ok(()) } else { Err(RowsLeft(left).into()) }
}

impl RowsReport {
    fn new(found: RowRepair, dry_run: bool) -> Self {
        let RowRepair { rows, brought_back, unreadable } = found;
        let unreadable = unreadable.into_iter().map(UnreadableDocument::from).collect();
        Self { dry_run, rows, brought_back, unreadable }
    }

    /// Returns the report for people: a table of the rows that cannot be read, and a sentence.
    fn text(&self) -> String {
        let Self { dry_run, rows, brought_back, unreadable } = self;
        let back = match (brought_back, dry_run) {
            (0, _) => "None had to be brought back.".to_owned(),
            (count, true) => format!("{count} can be read again, and would be brought back."),
            (count, false) => format!("{count} can be read again. They are tried within a minute."),
        };
        let end = format!("Rows: {rows}; unreadable: {}. {back}", unreadable.len());
        if unreadable.is_empty() {
            return end;
        }
        let header = ["ROW", "KIND", "UNREADABLE", "USER ID", "ENDPOINT ID", "NEXT TRY"];
        format!("{}\n\n{end}", table(header, unreadable.iter().map(UnreadableDocument::cells)))
    }
}

impl From<UnreadableRow> for UnreadableDocument {
    fn from(found: UnreadableRow) -> Self {
        let UnreadableRow { kind, unreadable, account_id, endpoint_id, wake_at } = found;
        let (row, what) = (unreadable.row, unreadable.what);
        Self { row, kind, what, user_id: account_id, endpoint_id, next_wake_up: wake_at }
    }
}

impl UnreadableDocument {
    fn cells(&self) -> [String; 6] {
        let or_dash = |id: Option<String>| id.unwrap_or_else(|| "-".to_owned());
        [
            self.row.clone(),
            self.kind.to_string(),
            self.what.clone(),
            or_dash(self.user_id.map(|id| id.to_string())),
            or_dash(self.endpoint_id.map(|id| id.to_string())),
            second(self.next_wake_up),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::rows::Unreadable;
    use serde_json::json;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn report(unreadable: Vec<UnreadableRow>, brought_back: u64, dry_run: bool) -> RowsReport {
        RowsReport::new(RowRepair { rows: 9, brought_back, unreadable }, dry_run)
    }

    fn spoilt() -> UnreadableRow {
        UnreadableRow {
            kind: RowKind::Delivery,
            unreadable: Unreadable { row: "delivery#1 delivery".to_owned(), what: "event".to_owned() },
            account_id: ID.parse().ok(),
            endpoint_id: None,
            wake_at: "2026-11-20T10:00:00.000Z".parse().ok(),
        }
    }

    #[test]
    fn the_document_has_what_is_known_of_each_row() {
        let document = serde_json::to_value(report(vec![spoilt()], 2, false)).unwrap();
        let row = json!({
            "row": "delivery#1 delivery", "kind": "delivery", "what": "event", "user_id": ID, "endpoint_id": null,
            "next_wake_up": "2026-11-20T10:00:00.000Z",
        });
        assert_eq!(document, json!({ "dry_run": false, "rows": 9, "brought_back": 2, "unreadable": [row] }));
    }

    #[test]
    fn people_see_a_table_and_what_was_done() {
        let text = report(vec![spoilt()], 2, true).text();
        assert!(text.contains("NEXT TRY") && text.contains("delivery#1 delivery"), "{text}");
        assert!(text.contains("2026-11-20 10:00:00Z"), "{text}");
        assert!(text.ends_with("Rows: 9; unreadable: 1. 2 can be read again, and would be brought back."), "{text}");
        assert_eq!(report(Vec::new(), 0, false).text(), "Rows: 9; unreadable: 0. None had to be brought back.");
        let text = report(Vec::new(), 3, false).text();
        assert_eq!(text, "Rows: 9; unreadable: 0. 3 can be read again. They are tried within a minute.");
    }
}
