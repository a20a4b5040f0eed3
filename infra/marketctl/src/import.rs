//! `marketctl import`: writes messages straight to the tables, in bulk. An import can be repeated safely, because
//! a message changes nothing unless it is newer than what is stored.
//!
//! A writer repeats a call many times before it gives up and moves on to the next one. If the store is down, it would take
//! hours to get through a file in this way. So the tables are checked from time to time, and an import waits until they
//! are back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::clock::{Clock, SystemClock};
use common::preflight::{Problem, ResourceKind};
use common::resources::Table;
use common::store::StoreError;
use feed::{Applier, ApplyOutcome, BadField, MAX_MESSAGE_BYTES, Message, Rejection, TaggedOutcome, parse};
use pretraffic::inventory::check_table;
use serde::Serialize;
use terminal::Output;

use crate::cli::ImportOptions;
use crate::failure::{CommandFailure, shortened, with_remedy};
use crate::input::{Chunk, INTERRUPTED, Input, RefusedField, RefusedLine, Source, Words, open_file};
use crate::session::Session;

/// The pause before each check of the tables. A chunk that is written sooner than this causes no check at all.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// If all messages of a chunk fail, and there are at least this many, the fault lies with the store.
const MIN_MESSAGES_OF_OUTAGE: usize = 20;

/// The pause before each look whether the store is back.
const PAUSE: Duration = Duration::from_secs(2);
/// How long an import waits for the store.
const PATIENCE: Duration = Duration::from_mins(15);
/// How often messages are tried again whose writing fails although the store is there.
const MAX_TRIES: u32 = 2;

const NOT_STORED_HINT: &str = "Nothing is wrong with the lines that were not stored. Import the file again; lines that are \
    already stored change nothing. If they fail again, `marketctl check` finds what is wrong.";

const WORDS: Words = Words {
    done: "imported",
    refused: "refused",
    refused_hint: "All other lines are stored. Correct these and import the file again; lines that are already stored change nothing.",
    all_refused_hint: "Nothing of the file is stored. Correct these lines and import it again.",
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
    report.not_stored.sort_by_key(|line| line.line);
    output.print(&report, Report::text)?;
    if ended.is_ok() || !report.refused.is_empty() {
        rejects.map_or(Ok(()), |rejects| rejects.write(&report.refused))?;
    }
    let is_whole = ended.is_ok() && report.not_stored.is_empty();
    report.result(ended, lines_read).map_err(|failure| match &options.rejects {
        Some(path) if is_whole => failure
            .with_hint(format!("All other lines are stored. Correct these in {}, and import that.", path.display())),
        _ => failure,
    })
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
    Ok(Input::start(opened, clock, MAX_MESSAGE_BYTES, move |line| parse(line, now.now())))
}

/// Imports all messages, chunk by chunk. The report has every line that was read, even if the import stops before the
/// end.
async fn import(session: &Session, input: &mut Input<Message>, report: &mut Report) -> Result<(), String> {
    check_tables(session).await?;
    let mut applier = Applier::new(session.stores());
    while let Some(chunk) = input.next().await? {
        report.refused.extend(chunk.refused.iter().map(|(line, rejection)| from_rejection(*line, rejection)));
        Box::pin(store(session, &mut applier, chunk.messages, input, report)).await?;
    }
    Ok(())
}

/// Stores the messages of a chunk. If the store is away, waits until it is back and begins again, which is safe.
async fn store(
    session: &Session,
    applier: &mut Applier,
    messages: Vec<(u64, Message)>,
    input: &mut Input<Message>,
    report: &mut Report,
) -> Result<(), String> {
    let (mut left, mut tries) = (messages, 0);
    loop {
        let outcomes = {
            let application = Box::pin(applier.apply(left.clone(), &*session.clock));
            tokio::select! {
                biased;
                outcomes = application => Some(outcomes),
                () = wait_for_outage(session) => None,
            }
        };
        let failed = match outcomes {
            Some(outcomes) => report.settle(outcomes),
            None => left.iter().map(|(line, _)| (*line, "the store was away".to_owned())).collect(),
        };
        let Some(reason) = failed.values().next() else { return Ok(()) };
        let is_all = failed.len() == left.len() && failed.len() >= MIN_MESSAGES_OF_OUTAGE;
        let stopped = format!("none of {} messages could be stored: {reason}", failed.len());
        left.retain(|(line, _)| failed.contains_key(line));
        let back = match check_tables(session).await {
            Ok(()) if tries == MAX_TRIES => {
                report.not_stored(&failed);
                return if is_all { Err(stopped) } else { Ok(()) };
            }
            Ok(()) => {
                tries += 1;
                Ok(())
            }
            Err(reason) => {
                input.say(&format!("waiting, because {reason}"));
                tokio::select! {
                    back = wait_for_return(session) => back,
                    () = input.interrupted() => Err(INTERRUPTED.to_owned()),
                }
            }
        };
        if let Err(reason) = back {
            report.not_stored(&failed);
            return Err(reason);
        }
        // What was under way when the store went away is unknown to this one.
        *applier = Applier::new(session.stores());
    }
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

/// Waits until the tables cannot be written to.
async fn wait_for_outage(session: &Session) {
    let mut failed_before = false;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        // A single failed check proves little: throttled writes may have used up the client's retries.
        let fails = check_tables(session).await.is_err();
        if fails && failed_before {
            return;
        }
        failed_before = fails;
    }
}

/// Waits until the tables can be written to again. Returns an error if that takes too long.
async fn wait_for_return(session: &Session) -> Result<(), String> {
    let gives_up_at = tokio::time::Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(PAUSE).await;
        match check_tables(session).await {
            Err(_) if tokio::time::Instant::now() < gives_up_at => {}
            checked => return checked,
        }
    }
}

/// How many lines were applied or changed nothing, which were refused, and which were not stored.
#[derive(Debug, Default, Serialize)]
struct Report {
    applied: u64,
    unchanged: u64,
    /// In the order of their line numbers.
    refused: Vec<RefusedLine>,
    /// Lines with which nothing is wrong, in the same order: the store was away, or cannot read what it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_stored: Vec<RefusedLine>,
}

impl Report {
    /// Returns the number of lines in the report.
    fn lines(&self) -> u64 {
        self.applied + self.unchanged + (self.refused.len() + self.not_stored.len()) as u64
    }

    /// Counts the outcomes of a chunk's messages. Returns the lines that may be stored if they are tried again, and why
    /// they were not.
    fn settle(&mut self, outcomes: Vec<TaggedOutcome<u64>>) -> BTreeMap<u64, String> {
        let mut failed = BTreeMap::new();
        for (line, outcome) in outcomes {
            match outcome {
                Ok(ApplyOutcome::Changed) => self.applied += 1,
                Ok(ApplyOutcome::Unchanged) => self.unchanged += 1,
                Ok(ApplyOutcome::Rejected(rejection)) => self.refused.push(from_rejection(line, &rejection)),
                Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => {
                    failed.insert(line, error.to_string());
                }
                Err(error @ (StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. })) => {
                    self.not_stored.push(whole(line, &error.to_string()));
                }
            }
        }
        failed
    }

    /// Counts lines as not stored. A part of them may be, because an answer was lost.
    fn not_stored(&mut self, failed: &BTreeMap<u64, String>) {
        self.not_stored.extend(failed.iter().map(|(line, reason)| whole(*line, reason)));
    }

    /// Returns an error if the import stopped early, or if lines were refused or not stored.
    fn result(&self, ended: Result<(), String>, lines_read: u64) -> Result<(), CommandFailure> {
        let Self { refused, not_stored, .. } = self;
        if ended.is_err() || not_stored.is_empty() {
            return WORDS.result(ended, lines_read, self.lines(), refused);
        }
        let others = if refused.is_empty() { String::new() } else { format!(", and {} refused", refused.len()) };
        let message = format!("{} of {} lines not stored{others}", not_stored.len(), self.lines());
        let details = not_stored.iter().map(|line| format!("not stored: {line}"));
        Err(CommandFailure::new(message, NOT_STORED_HINT)
            .with_details(details.chain(refused.iter().map(ToString::to_string))))
    }

    fn text(&self) -> String {
        let Self { applied, unchanged, refused, not_stored } = self;
        if self.lines() == 0 {
            return "Nothing was imported.".to_owned();
        }
        let why = if *unchanged > 0 { " (stored already, in this version or a newer one)" } else { "" };
        let refused = match refused.len() {
            0 => String::new(),
            count => format!(", {count} refused"),
        };
        let not_stored = match not_stored.len() {
            0 => String::new(),
            count => format!(", {count} not stored"),
        };
        format!("{applied} applied, {unchanged} unchanged{why}{refused}{not_stored}.")
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
        // What is in it stays until there is something else to write.
        let opened = File::options().create(true).truncate(false).write(true).open(to);
        let file = opened.map_err(|error| not_written(to, &error, "Nothing was imported."))?;
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
    let mut lines = BufReader::new(open_file(from)?.stream);
    if to.metadata()?.is_file() {
        to.set_len(0)?;
    }
    let mut to = BufWriter::new(to);
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
    use serde_json::json;

    #[test]
    fn the_document_names_line_field_and_reason() {
        let refused = vec![from_rejection(3, &Rejection::new("variants[0].wear", "missing")), whole(4, "no")];
        let report = Report { applied: 2, unchanged: 1, refused, not_stored: Vec::new() };
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
    fn what_was_not_stored_is_no_fault_of_its_line() {
        let (away, corrupt) = (StoreError::Unavailable("away".to_owned()), StoreError::corrupt("version"));
        let mut report = Report::default();
        let outcomes = [(1, Ok(ApplyOutcome::Changed)), (2, Err(away)), (3, Err(corrupt))];
        let failed = report.settle(outcomes.into());
        assert_eq!(failed, BTreeMap::from([(2, "away".to_owned())]));
        report.not_stored(&failed);
        assert_eq!((report.lines(), report.refused.len()), (3, 0));
        let failure = report.result(Ok(()), 3).unwrap_err().text();
        assert!(failure.starts_with("error: 2 of 3 lines not stored\n  not stored: line 3: "), "{failure}");
        report.refused.push(whole(4, "no"));
        let failure = report.result(Ok(()), 4).unwrap_err().text();
        assert!(failure.contains("2 of 4 lines not stored, and 1 refused") && failure.contains("\n  line 4: no\n"));
        let stopped = report.result(Err("gone".to_owned()), 4).unwrap_err().text();
        assert!(stopped.starts_with("error: stopped after line 4: gone"), "{stopped}");
    }
}
