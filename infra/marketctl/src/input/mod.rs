//! The input of `import` and `feed send`: messages, one per line, from a file or standard input. The next chunk is read in
//! a thread of its own while the last one is being worked on.

mod lines;

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use common::clock::Clock;
use feed::Rejection;
use flate2::bufread::MultiGzDecoder;
use serde::Serialize;
use terminal::{Bar, count};
use tokio::sync::mpsc::{self, Receiver};

use crate::failure::CommandFailure;
use crate::interrupt::Interrupt;
pub(crate) use lines::Chunk;
use lines::Chunks;

/// How a file begins that gzip has packed.
pub(crate) const GZIP: &[u8] = b"\x1f\x8b";
const BUFFER_BYTES: usize = 256 * 1_024;
const BAR_TEMPLATE: &str = "{bar:12} {percent}% of {total_bytes}, {msg}{left}";
const SPINNER_TEMPLATE: &str = "{spinner} {bytes} {msg}";

/// Why a command stops at Ctrl-C.
pub(crate) const INTERRUPTED: &str = "it was interrupted";

/// A FILE argument; `-` is standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

/// An open source.
pub(crate) struct OpenedSource {
    pub(crate) stream: Box<dyn Read + Send>,
    /// Its length in bytes, if known.
    bytes: Option<u64>,
}

impl From<OsString> for Source {
    fn from(argument: OsString) -> Self {
        if argument == "-" { Self::Stdin } else { Self::File(argument.into()) }
    }
}

impl Source {
    pub(crate) fn open(&self) -> Result<OpenedSource, CommandFailure> {
        match self {
            Self::Stdin => Ok(OpenedSource { stream: Box::new(io::stdin()), bytes: None }),
            Self::File(path) => open_file(path).map_err(|cause| {
                let message = format!("{} cannot be opened: {cause}", path.display());
                CommandFailure::new(message, "Give a file that can be read, or `-` for standard input.")
            }),
        }
    }
}

/// Opens a file. One that gzip has packed is read unpacked.
pub(crate) fn open_file(path: &Path) -> io::Result<OpenedSource> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The length of a pipe or a device says nothing about how much there is to read, and its start can be read only once.
    if !metadata.is_file() {
        return Ok(OpenedSource { stream: Box::new(file), bytes: None });
    }
    let mut head = Vec::new();
    (&file).take(GZIP.len() as u64).read_to_end(&mut head)?;
    file.rewind()?;
    if head == GZIP {
        return Ok(OpenedSource { stream: Box::new(MultiGzDecoder::new(BufReader::new(file))), bytes: None });
    }
    Ok(OpenedSource { stream: Box::new(file), bytes: Some(metadata.len()) })
}

/// The chunks of a source. Dropping it does not wait for the thread, which may be blocked in a read of standard input;
/// the thread then ends with the process.
pub(crate) struct Input<M> {
    chunks: Receiver<io::Result<Chunk<M>>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Interrupt,
    progress: Progress,
    /// The number of the last line that was read; 0 if none was.
    lines_read: u64,
    bytes_read: u64,
}

impl<M: Send + 'static> Input<M> {
    /// Starts a thread that reads lines of at most `max_bytes` bytes and parses each into a message. A file that is
    /// something else than lines is an error.
    pub(crate) fn start(
        source: OpenedSource,
        clock: &Arc<dyn Clock>,
        max_bytes: usize,
        parse: impl FnMut(&str) -> Result<M, Rejection> + Send + 'static,
    ) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        let buffered = BufReader::with_capacity(BUFFER_BYTES, source.stream);
        let parsed = Chunks::new(buffered, max_bytes, Box::new(parse));
        let thread = std::thread::spawn(move || {
            for chunk in parsed {
                let last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || last {
                    break;
                }
            }
        });
        let progress = Progress::start(source.bytes, Arc::clone(clock));
        Self { chunks, thread: Some(thread), interrupt: Interrupt::catch(), progress, lines_read: 0, bytes_read: 0 }
    }

    /// Returns the next chunk, or `None` after the last. The chunk before is then shown as done. Ctrl-C is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Chunk<M>>, String> {
        self.progress.show(self.lines_read, self.bytes_read);
        let received = tokio::select! {
            biased;
            () = self.interrupt.interrupted() => return Err(INTERRUPTED.to_owned()),
            received = self.chunks.recv() => received,
        };
        let chunk = match received {
            Some(chunk) => chunk.map_err(|error| format!("the input cannot be read: {error}"))?,
            // If the thread panicked, that must not look like the end of the file.
            None if self.thread.take().is_some_and(|thread| thread.join().is_err()) => {
                return Err("the input cannot be read: the thread that reads the input panicked".to_owned());
            }
            None => return Ok(None),
        };
        self.lines_read += chunk.lines;
        self.bytes_read += chunk.bytes;
        Ok(Some(chunk))
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn interrupted(&self) {
        self.interrupt.interrupted().await;
    }

    /// Shows in place of the progress what the command does, until the next chunk. Without a terminal it becomes a line of
    /// the log.
    pub(crate) fn say(&self, what: &str) {
        self.progress.bar.set_message(what.to_owned());
        terminal::say_without_terminal(what);
    }

    /// Ends the run, and puts the refused lines in order. Returns the number of the last line that was read; 0 if none
    /// was.
    pub(crate) fn finish(self, refused: &mut [RefusedLine]) -> u64 {
        refused.sort_by_key(|refused| refused.line);
        self.lines_read
    }
}

/// Shows the progress on standard error, if that is a terminal: a bar if the size of the input is known, otherwise a
/// spinner.
struct Progress {
    bar: Bar,
    clock: Arc<dyn Clock>,
    started: Duration,
    bytes: u64,
}

impl Progress {
    fn start(bytes: Option<u64>, clock: Arc<dyn Clock>) -> Self {
        let bar = bytes.map_or_else(|| Bar::spinner(SPINNER_TEMPLATE), |bytes| Bar::new(BAR_TEMPLATE, bytes));
        Self { bar, started: clock.monotonic(), clock, bytes: 0 }
    }

    /// Shows how many lines and bytes are done.
    fn show(&mut self, lines: u64, bytes: u64) {
        self.bar.advance(bytes - self.bytes);
        self.bytes = bytes;
        let rate = per_second(lines, self.clock.monotonic().saturating_sub(self.started));
        self.bar.set_message(format!("{} lines/s", count(rate)));
    }
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    let millis = elapsed.as_millis().max(1);
    u64::try_from(u128::from(count) * 1_000 / millis).unwrap_or(u64::MAX)
}

/// A line that was not applied or not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RefusedLine {
    /// The line's number, counted from 1.
    pub(crate) line: u64,
    /// The path of the offending field; empty if the line as a whole is refused, absent if fields are not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    pub(crate) reason: String,
    /// The other offending fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<RefusedField>,
}

/// A field that is one of several for which a line was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RefusedField {
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl fmt::Display for RefusedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, reason, others } = self;
        write!(f, "line {line}: ")?;
        if let Some(field) = field.as_ref().filter(|field| !field.is_empty()) {
            write!(f, "{field}: ")?;
        }
        f.write_str(reason)?;
        others.iter().try_for_each(|RefusedField { field, reason }| write!(f, "; {field}: {reason}"))
    }
}

/// The words of a command for how a run over its input ended.
pub(crate) struct Words {
    /// What is done with lines: `imported` or `sent`.
    pub(crate) done: &'static str,
    /// What the refused lines are, and what to do about them: if there are others, and if there are none.
    pub(crate) refused: &'static str,
    pub(crate) refused_hint: &'static str,
    pub(crate) all_refused_hint: &'static str,
    /// What to do if the run stopped before the end of its input.
    pub(crate) stopped_hint: &'static str,
}

impl Words {
    /// Returns an error if a run stopped early or refused some of its lines.
    pub(crate) fn result(
        &self,
        ended: Result<(), String>,
        lines_read: u64,
        lines: u64,
        refused: &[RefusedLine],
    ) -> Result<(), CommandFailure> {
        let (message, hint) = match (ended, lines_read) {
            (Ok(()), _) if refused.is_empty() => return Ok(()),
            (Ok(()), _) => {
                let is_all = refused.len() as u64 == lines;
                let hint = if is_all { self.all_refused_hint } else { self.refused_hint };
                (format!("{} of {lines} lines {}", refused.len(), self.refused), hint)
            }
            (Err(reason), 0) => (format!("nothing was {}: {reason}", self.done), self.stopped_hint),
            (Err(reason), line) => (format!("stopped after line {line}: {reason}"), self.stopped_hint),
        };
        let failure = CommandFailure::new(message, hint);
        Err(failure.with_details(refused.iter().map(ToString::to_string)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::clock::SystemClock;

    /// A stream that makes its reader panic.
    struct Breaking;

    impl Read for Breaking {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("a fault in the reading thread")
        }
    }

    fn refused(line: u64) -> RefusedLine {
        RefusedLine { line, field: None, reason: "no".to_owned(), others: Vec::new() }
    }

    #[tokio::test]
    async fn a_thread_that_breaks_down_is_not_the_end_of_the_file() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let input = |stream: Box<dyn Read + Send>| {
            Input::start(OpenedSource { stream, bytes: None }, &clock, 100, |line| Ok(line.len()))
        };
        let mut read = input(Box::new(&b"nonsense\n"[..]));
        assert_eq!(read.next().await.unwrap().unwrap().lines, 1);
        assert!(read.next().await.unwrap().is_none());
        let mut refused = [9, 7, 8].map(refused);
        assert_eq!((read.finish(&mut refused), refused.map(|refused| refused.line)), (1, [7, 8, 9]));
        assert!(input(Box::new(Breaking)).next().await.is_err());
    }

    #[test]
    fn a_dash_is_standard_input_and_what_cannot_be_read_is_named() {
        assert_eq!(Source::from(OsString::from("-")), Source::Stdin);
        assert_eq!(Source::from(OsString::from("./-")), Source::File("./-".into()));
        for path in ["/nowhere/feed.ndjson", "/"] {
            let refused = Source::File(path.into()).open().err().unwrap();
            assert!(refused.text().starts_with(&format!("error: {path} cannot be opened: ")));
        }
    }

    #[test]
    fn a_rate_is_per_second_and_needs_no_time_to_have_passed() {
        assert_eq!(per_second(4_000, Duration::from_millis(500)), 8_000);
        assert_eq!(per_second(0, Duration::ZERO), 0);
        assert_eq!(per_second(1, Duration::from_secs(3)), 0);
    }

    #[test]
    fn a_failure_names_each_refused_line_to_people() {
        let words = Words {
            done: "sent",
            refused: "not sent",
            refused_hint: "Correct them.",
            all_refused_hint: "None was sent.",
            stopped_hint: "Fix it.",
        };
        let refused = [7, 9].map(refused);
        let failure = words.result(Ok(()), 9, 9, &refused).unwrap_err();
        assert_eq!(failure.text(), "error: 2 of 9 lines not sent\n  line 7: no\n  line 9: no\nCorrect them.");
        assert!(words.result(Ok(()), 2, 2, &refused).unwrap_err().text().ends_with("\nNone was sent."));
        let stopped = |line| words.result(Err("away".to_owned()), line, line, &[]).unwrap_err().text();
        assert_eq!(stopped(0), "error: nothing was sent: away\nFix it.");
        assert_eq!(stopped(7), "error: stopped after line 7: away\nFix it.");
        assert!(words.result(Ok(()), 9, 9, &[]).is_ok());
    }
}
