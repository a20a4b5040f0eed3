//! `marketctl import`: writes messages straight to the tables, in bulk. An import can be repeated safely, because
//! a message changes nothing unless it is newer than what is stored.
//!
//! A writer repeats a call many times before it gives up and moves on to the next one. If the store is down, it would take
//! hours to get through a file in this way. So the tables are checked from time to time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::clock::{Clock, SystemClock};
use common::preflight::{Problem, ResourceKind};
use common::resources::Table;
use feed::{Applier, ApplyOutcome, BadField, MAX_MESSAGE_BYTES, Message, Rejection, TaggedOutcome, parse};
use pretraffic::inventory::check_table;
use serde::Serialize;
use terminal::Output;

use crate::cli::ImportOptions;
use crate::failure::{CommandFailure, shortened, with_remedy};
use crate::input::{Chunk, Input, RefusedField, RefusedLine, Source, Words};
use crate::session::Session;

/// The pause before each check of the tables. A chunk that is written sooner than this causes no check at all.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// If all messages of a chunk fail, and there are at least this many, the fault lies with the store.
const MIN_MESSAGES_OF_OUTAGE: usize = 20;

const WORDS: Words = Words {
    done: "imported",
    refused: "refused",
    refused_hint: "All other lines are stored. Correct these and import the file again; lines that are already stored change nothing.",
    all_refused_hint: "None of these lines is known to be stored. Correct these, or the cause, and import the file again; lines that are already stored change nothing.",
    stopped_hint: "Import the file again; lines that are already stored change nothing. If something is wrong, `marketctl check` finds it.",
};

const DRY_RUN_WORDS: Words = Words {
    done: "checked",
    refused_hint: "All other lines can be imported. Correct these and check the file again.",
    all_refused_hint: "Correct these and check the file again.",
    stopped_hint: "Check the file again.",
    ..WORDS
};

pub(crate) async fn run(options: &ImportOptions, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let mut input = open(&options.file, &session.clock)?;
    let rejects = Rejects::of(options)?;
    let mut report = Report::default();
    let ended = import(session, &mut input, &mut report).await;
    let lines_read = input.finish(&mut report.refused);
    output.print(&report, Report::text)?;
    rejects.map_or(Ok(()), |rejects| rejects.write(&report.refused))?;
    WORDS.result(ended, lines_read, report.lines(), &report.refused)
}

/// Checks the lines as an import does before it stores them, and stores none.
pub(crate) async fn validate(options: &ImportOptions, output: Output) -> Result<(), CommandFailure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut input = open(&options.file, &clock)?;
    let rejects = Rejects::of(options)?;
    let mut report = DryRunReport::default();
    let ended = loop {
        match input.next().await {
            Ok(Some(chunk)) => report.add(&chunk),
            Ok(None) => break Ok(()),
            Err(reason) => break Err(reason),
        }
    };
    let lines_read = input.finish(&mut report.refused);
    output.print(&report, DryRunReport::text)?;
    rejects.map_or(Ok(()), |rejects| rejects.write(&report.refused))?;
    DRY_RUN_WORDS.result(ended, lines_read, report.valid + report.refused.len() as u64, &report.refused)
}

fn open(source: &Source, clock: &Arc<dyn Clock>) -> Result<Input<Message>, CommandFailure> {
    let (opened, now) = (source.open()?, Arc::clone(clock));
    Ok(Input::start(opened, clock, MAX_MESSAGE_BYTES, false, move |line| parse(line, now.now())))
}

/// Imports all messages, chunk by chunk. The report has every line that was read, even if the import stops before the
/// end.
async fn import(session: &Session, input: &mut Input<Message>, report: &mut Report) -> Result<(), String> {
    check_tables(session).await?;
    let mut applier = Applier::new(session.stores());
    while let Some(chunk) = input.next().await? {
        report.refused.extend(chunk.refused.iter().map(|(line, rejection)| from_rejection(*line, rejection)));
        let lines: Vec<u64> = chunk.messages.iter().map(|(line, _)| *line).collect();
        let outcomes = Box::pin(applier.apply(chunk.messages, &*session.clock));
        tokio::select! {
            biased;
            outcomes = outcomes => report.settle(outcomes)?,
            reason = wait_for_outage(session) => {
                report.abandon(&lines, &reason);
                return Err(reason);
            }
        }
    }
    Ok(())
}

/// Returns an error if nothing can be written to one of the tables.
async fn check_tables(session: &Session) -> Result<(), String> {
    for table in [Table::Market, Table::Accounts] {
        let name = session.resources.table(table);
        match check_table(&session.dynamodb, &name, &[]).await {
            Err(problem @ (Problem::Missing | Problem::Refused(_) | Problem::Unreachable(_))) => {
                return Err(with_remedy(&problem, ResourceKind::Table, &name));
            }
            // The table is being changed, or we may not describe it. Writing to it may still succeed.
            Err(Problem::NotActive(_) | Problem::NoIndex(_) | Problem::Content(_) | Problem::Denied(_)) | Ok(()) => {}
        }
    }
    Ok(())
}

/// Waits until the tables cannot be written to, and returns the reason.
async fn wait_for_outage(session: &Session) -> String {
    let mut failed_before = false;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        // A single failed check proves little: throttled writes may have used up the client's retries.
        match check_tables(session).await {
            Err(reason) if failed_before => return reason,
            checked => failed_before = checked.is_err(),
        }
    }
}

/// How many lines were applied or changed nothing, and which were refused.
#[derive(Debug, Default, Serialize)]
struct Report {
    applied: u64,
    unchanged: u64,
    /// In the order of their line numbers.
    refused: Vec<RefusedLine>,
}

impl Report {
    /// Returns the number of lines in the report.
    fn lines(&self) -> u64 {
        self.applied + self.unchanged + self.refused.len() as u64
    }

    /// Counts the outcomes of a chunk's messages. Returns an error if all of them failed, and there are at least
    /// [`MIN_MESSAGES_OF_OUTAGE`]: then the store is down.
    fn settle(&mut self, outcomes: Vec<TaggedOutcome<u64>>) -> Result<(), String> {
        let (messages, mut errors) = (outcomes.len(), Vec::new());
        for (line, outcome) in outcomes {
            match outcome {
                Ok(ApplyOutcome::Changed) => self.applied += 1,
                Ok(ApplyOutcome::Unchanged) => self.unchanged += 1,
                Ok(ApplyOutcome::Rejected(rejection)) => self.refused.push(from_rejection(line, &rejection)),
                Err(error) => errors.push(whole(line, &error.to_string())),
            }
        }
        let away = errors.first().filter(|_| errors.len() == messages && messages >= MIN_MESSAGES_OF_OUTAGE);
        let ended = away.map(|error| format!("none of {messages} messages could be stored: {}", error.reason));
        self.refused.append(&mut errors);
        ended.map_or(Ok(()), Err)
    }

    /// Counts messages as refused, because the import stopped before their outcome was known.
    fn abandon(&mut self, lines: &[u64], reason: &str) {
        let reason = format!("this may or may not have been stored: {reason}");
        self.refused.extend(lines.iter().map(|line| whole(*line, &reason)));
    }

    fn text(&self) -> String {
        let Self { applied, unchanged, refused } = self;
        if self.lines() == 0 {
            return "Nothing was imported.".to_owned();
        }
        let why = if *unchanged > 0 { " (stored already, in this version or a newer one)" } else { "" };
        let refused = match refused.len() {
            0 => String::new(),
            count => format!(", {count} refused"),
        };
        format!("{applied} applied, {unchanged} unchanged{why}{refused}.")
    }
}

fn from_rejection(line: u64, rejection: &Rejection) -> RefusedLine {
    let other = |bad: &BadField| RefusedField { field: shortened(&bad.field), reason: shortened(&bad.reason) };
    let others = rejection.others.iter().map(other).collect();
    RefusedLine { line, field: Some(shortened(&rejection.field)), reason: shortened(&rejection.reason), others }
}

/// What a dry run found.
#[derive(Debug, Default, Serialize)]
struct DryRunReport {
    /// How many lines an import would store, unless something newer is stored.
    valid: u64,
    /// In the order of their line numbers.
    refused: Vec<RefusedLine>,
}

impl DryRunReport {
    fn add(&mut self, chunk: &Chunk<Message>) {
        self.valid += chunk.messages.len() as u64;
        self.refused.extend(chunk.refused.iter().map(|(line, rejection)| from_rejection(*line, rejection)));
    }

    fn text(&self) -> String {
        format!("{} valid, {} refused. Nothing was written.", self.valid, self.refused.len())
    }
}

/// The file that gets the refused lines as they are.
struct Rejects<'a> {
    from: &'a Path,
    to: &'a Path,
    file: File,
}

impl<'a> Rejects<'a> {
    /// Opens the file before anything is imported. The lines are read again at the end, because they may be of any length.
    fn of(options: &'a ImportOptions) -> Result<Option<Self>, CommandFailure> {
        let ImportOptions { file: source, rejects, .. } = options;
        let Some(to) = rejects else { return Ok(None) };
        // It is read twice.
        let Source::File(from) = source else { return Err(no_file()) };
        if !from.is_file() {
            return Err(no_file());
        }
        if from.canonicalize().is_ok_and(|from| to.canonicalize().is_ok_and(|to| from == to)) {
            return Err(CommandFailure::invalid(
                "rejects",
                "must be another file than the one to import",
                "Nothing was imported.",
            ));
        }
        let file = File::create(to).map_err(|error| not_written(to, &error, "Nothing was imported."))?;
        Ok(Some(Self { from, to, file }))
    }

    fn write(self, refused: &[RefusedLine]) -> Result<(), CommandFailure> {
        let Self { from, to, file } = self;
        let copied = copy_lines(from, file, refused);
        copied.map_err(|error| not_written(to, &error, "The lines before are imported. Import the file again."))
    }
}

fn no_file() -> CommandFailure {
    let hint = "Nothing was imported. Write what you read into a file, and import that.";
    CommandFailure::invalid("rejects", "needs a file to import, not standard input or a pipe", hint)
}

fn not_written(path: &Path, error: &io::Error, hint: &'static str) -> CommandFailure {
    CommandFailure::new(format!("refused lines cannot be written to {}: {error}", path.display()), hint)
}

/// Copies the refused lines of a file. They come in the order of their numbers.
fn copy_lines(from: &Path, to: File, refused: &[RefusedLine]) -> io::Result<()> {
    let (mut lines, mut to) = (BufReader::new(File::open(from)?), BufWriter::new(to));
    let (mut line, mut number) = (Vec::new(), 0);
    for refused in refused {
        while number < refused.line {
            line.clear();
            lines.read_until(b'\n', &mut line)?;
            number += 1;
        }
        to.write_all(&line)?;
    }
    to.flush()
}

/// Refuses a line as a whole and not because of one of its fields.
fn whole(line: u64, reason: &str) -> RefusedLine {
    from_rejection(line, &Rejection::new("", reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::store::StoreError;
    use serde_json::json;

    #[test]
    fn the_document_names_line_field_and_reason() {
        let refused = vec![from_rejection(3, &Rejection::new("variants[0].wear", "missing")), whole(4, "no")];
        let report = Report { applied: 2, unchanged: 1, refused };
        let expected = json!({ "applied": 2, "unchanged": 1, "refused": [
            { "line": 3, "field": "variants[0].wear", "reason": "missing" },
            { "line": 4, "field": "", "reason": "no" },
        ]});
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        assert_eq!(report.lines(), 5);
    }

    #[test]
    fn every_bad_field_of_a_line_is_named() {
        let line = r#"{"type":"item","id":"no spaces","variants":[{"variant_id":"x","colour":"red"}],"version":1}"#;
        let rejection = parse(line, common::timestamp::Timestamp::from_millis(0)).unwrap_err();
        let refused = from_rejection(7, &rejection);
        let document = json!(refused);
        let others = document["others"].as_array().unwrap();
        let named: Vec<_> = others.iter().map(|other| other["field"].as_str().unwrap()).collect();
        assert_eq!(document["field"], "id");
        assert_eq!(named, ["variants[0].stattrak", "variants[0].colour", "variants[0].variant_id"]);
        let text = refused.to_string();
        assert!(text.starts_with("line 7: id: ") && text.contains("; variants[0].variant_id: "), "{text}");
    }

    #[test]
    fn messages_that_fail_one_and_all_end_the_import() {
        let error = || Err(StoreError::Unavailable("away".to_owned()));
        let mut report = Report::default();
        assert!(report.settle((1..=19).map(|line| (line, error())).collect()).is_ok());
        assert!(report.settle((20..=60).map(|line| (line, error())).collect()).is_err());
        let one_stored = (61..=99).map(|line| (line, error())).chain([(100, Ok(ApplyOutcome::Changed))]);
        assert!(report.settle(one_stored.collect()).is_ok());
        assert_eq!((report.applied, report.lines()), (1, 100));
        assert_eq!(report.refused[0], whole(1, "away"));
    }
}
