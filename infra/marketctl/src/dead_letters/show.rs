//! Dead letters as documents and as text for people.

use std::collections::BTreeMap;

use serde::Serialize;
use terminal::{count, printable};

use super::letter::{Cause, Letter};
use super::queue::Taken;
use crate::cli::{LetterFilter, LetterQueue};

/// The most reasons that people see. The JSON output has all of them.
const MAX_REASONS_SHOWN: usize = 10;

/// The result of `dead-letters list`.
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    /// How many letters there are that fit the filter.
    found: usize,
    /// The oldest of them.
    letters: Vec<Letter>,
    /// How many of them there are for each reason, the most first.
    reasons: Vec<ReasonCount>,
    /// About how many letters are hidden, because somebody else holds them.
    hidden: u64,
    /// About how many letters were not looked at because there are too many.
    more: u64,
}

#[derive(Debug, Serialize)]
struct ReasonCount {
    letters: usize,
    queue: LetterQueue,
    cause: Cause,
    /// The field, without the numbers of its entries.
    field: Option<String>,
    reason: String,
}

impl Listing {
    pub(super) fn new(taken: impl IntoIterator<Item = Taken>, filter: &LetterFilter, limit: usize) -> Self {
        let (mut letters, mut hidden, mut more) = (Vec::new(), 0, 0);
        for taken in taken {
            hidden += taken.hidden;
            more += taken.more;
            letters.extend(taken.letters.into_iter().filter(|letter| letter.fits(filter)));
        }
        letters.sort_by_key(|letter| (letter.sent_at, letter.message_id));
        let (found, reasons) = (letters.len(), reasons(&letters));
        letters.truncate(limit);
        Self { found, letters, reasons, hidden, more }
    }

    pub(super) fn text(&self) -> String {
        let Self { found, letters, reasons, hidden, more } = self;
        let mut parts: Vec<String> = letters.iter().map(entry).collect();
        if *found > letters.len() {
            parts.push(format!("These are the {} oldest of {found}. --limit shows more.", letters.len()));
        }
        if reasons.is_empty() {
            parts.push("There are no such dead letters.".to_owned());
        } else {
            let lines: Vec<_> = reasons.iter().take(MAX_REASONS_SHOWN).map(ReasonCount::line).collect();
            parts.push(format!(" LETTERS  WHY\n{}", lines.join("\n")));
            let rest = reasons.len().saturating_sub(MAX_REASONS_SHOWN);
            if rest > 0 {
                parts.push(format!("There are {rest} more reasons; --json lists all of them."));
            }
            parts.push("To see one with its message:\n\n    marketctl dead-letters show ID".to_owned());
        }
        if *hidden > 0 {
            let hidden = count(*hidden);
            parts.push(format!(
                "About {hidden} more are hidden, because somebody looks at them: list again in a minute."
            ));
        }
        if *more > 0 {
            parts.push(format!("About {} more are there and were not looked at.", count(*more)));
        }
        parts.join("\n\n")
    }
}

impl ReasonCount {
    fn line(&self) -> String {
        let Self { letters, queue, field, reason, .. } = self;
        let field = field.as_ref().map_or_else(String::new, |field| format!("{field}: "));
        format!("{:>8}  {}: {}", count(*letters as u64), queue.as_str(), printable(&format!("{field}{reason}")))
    }
}

/// Counts letters by why they are here, the most frequent reason first.
fn reasons(letters: &[Letter]) -> Vec<ReasonCount> {
    let mut counts = BTreeMap::new();
    for letter in letters {
        let Letter { queue, cause, reason, .. } = letter;
        *counts.entry((*queue, letter.field.as_deref().map(unnumbered), reason, *cause)).or_default() += 1;
    }
    let counts = counts.into_iter().map(|((queue, field, reason, cause), letters)| ReasonCount {
        letters,
        queue,
        cause,
        field,
        reason: reason.clone(),
    });
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by_key(|reason| std::cmp::Reverse(reason.letters));
    counts
}

/// Returns the path of a field without the numbers of entries: `variants[3].wear` becomes `variants[].wear`.
fn unnumbered(field: &str) -> String {
    let mut parts = field.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| path + "[" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// A letter in the list: its id on a line of its own, so that it can be copied.
fn entry(letter: &Letter) -> String {
    let Letter { message_id, queue, sent_at, .. } = letter;
    let [about, why] = [letter.about(), letter.why()].map(|text| printable(&text));
    format!("{message_id}\n  {sent_at}, {}: {about}\n  {why}", queue.as_str())
}

/// A letter with its message.
#[derive(Debug, Serialize)]
pub(super) struct ShownLetter<'a> {
    #[serde(flatten)]
    pub(super) letter: &'a Letter,
    pub(super) body: &'a str,
}

impl ShownLetter<'_> {
    pub(super) fn text(&self) -> String {
        let Letter { message_id, queue, sent_at, expires_at, cause, others, .. } = self.letter;
        let [about, why] = [self.letter.about(), self.letter.why()].map(|text| printable(&text));
        let mut parts = vec![
            format!("Dead letter {message_id} ({}) is {about}.", queue.as_str()),
            format!("Sent {sent_at}. SQS deletes it {expires_at}."),
            format!("{}: {why}", cause.sentence()),
        ];
        if let Some(others) = others {
            parts.push(format!("Other bad fields: {}", printable(others)));
        }
        parts.push(format!("\nIts message:\n\n    {}\n", printable(self.body)));
        parts.push(match cause {
            Cause::Refused => format!(
                "To mend it and send it back:\n\n    marketctl dead-letters show {message_id} --body >message.json\n    \
                 marketctl dead-letters resend {message_id} --file message.json"
            ),
            Cause::Defect | Cause::Received | Cause::Unknown => format!(
                "To send it back once the cause is removed:\n\n    marketctl dead-letters resend {message_id}"
            ),
        });
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_list_count_as_one_field() {
        for (path, field) in [("variants[3].wear", "variants[].wear"), ("a[10][2]", "a[][]"), ("id", "id"), ("$", "$")]
        {
            assert_eq!(unnumbered(path), field);
        }
    }
}
