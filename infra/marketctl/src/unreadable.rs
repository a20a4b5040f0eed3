//! Rows that a command cannot read, and so leaves out of its result.

use platform::rows::Unreadable;
use serde_json::json;
use thiserror::Error;

use crate::failure::CommandFailure;

/// Some rows are missing from what was printed.
#[derive(Debug, Error)]
#[error("rows that cannot be read and were left out: {}", .0.len())]
struct LeftOut(Vec<Unreadable>);

impl From<LeftOut> for CommandFailure {
    fn from(error: LeftOut) -> Self {
        let rows = error.0.iter().map(|Unreadable { row, what }| json!({ "row": row, "what": what }));
        Self::new(
            error.to_string(),
            "Each line is a row's key and what cannot be read of it. If a newer release wrote it, use that release's `marketctl`.",
        )
        .with_details(error.0.iter().map(ToString::to_string))
        .with_member("unreadable", rows.collect())
    }
}

/// Returns an error if rows had to be left out. The result, which is printed before, has the form that it always has.
pub(crate) fn none_left_out(unreadable: Vec<Unreadable>) -> Result<(), CommandFailure> {
    if unreadable.is_empty() { Ok(()) } else { Err(LeftOut(unreadable).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_programs_see_which_rows_are_missing() {
        let unreadable = || Unreadable { row: "delivery#1 delivery".to_owned(), what: "event".to_owned() };
        let failure = none_left_out(vec![unreadable(), unreadable()]).unwrap_err();
        let text = failure.text();
        assert!(
            text.starts_with("error: rows that cannot be read and were left out: 2\n  delivery#1 delivery: event\n")
        );
        let row = json!({ "row": "delivery#1 delivery", "what": "event" });
        assert_eq!(failure.document()["unreadable"], json!([row, row]));
        assert!(none_left_out(Vec::new()).is_ok());
    }
}
