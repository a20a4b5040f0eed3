//! Structured logs: one flat JSON object per line, with `timestamp` and `level` as in Lambda's JSON log format. The
//! `tracing` subscriber here writes each event as a line and ignores spans.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::io::Write;
use std::panic::{self, PanicHookInfo};
use std::sync::{PoisonError, RwLock};

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::aws::Lookup;
use crate::clock::{Clock, SystemClock};
use crate::timestamp::Timestamp;

/// The environment variable in which Lambda gives the function's name.
pub const FUNCTION_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// The environment variable in which Lambda gives the level that its console and `LoggingConfig` set.
const LEVEL_VARIABLE: &str = "AWS_LAMBDA_LOG_LEVEL";

/// The target of audit lines, which say who changed what.
pub const AUDIT: &str = "audit";

/// Logs to standard output, where Lambda reads logs. All functions share a log group, so each line names its function.
pub fn to_stdout(lookup: Lookup<'_>) {
    let function = lookup(FUNCTION_VARIABLE);
    start(LineSubscriber {
        most: lookup(LEVEL_VARIABLE).map_or(LevelFilter::INFO, |level| most(&level)),
        wanted: is_our_own,
        function,
        writer: || Box::new(io::stdout().lock()),
    });
    panic::set_hook(Box::new(log_panic));
}

/// Returns the least important level that is logged. Below `INFO` the libraries log requests, and so secrets.
fn most(level: &str) -> LevelFilter {
    match level {
        "WARN" => LevelFilter::WARN,
        "ERROR" | "FATAL" => LevelFilter::ERROR,
        _ => LevelFilter::INFO,
    }
}

/// Leaves out the runtime's own line about a panic or an error, because the function has already logged it.
fn is_our_own(event: &Metadata<'_>) -> bool {
    event.target() != "lambda_runtime::layers::panic"
}

/// Logs a panic in one line. The message is included only if it is a fixed text, because a formatted message may
/// contain a secret.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(tracing::field::display);
    let text = panic.payload().downcast_ref::<&'static str>();
    tracing::error!(place, text, "panicked");
}

/// Logs warnings and errors to standard error, for programs whose standard output is their result.
pub fn to_stderr() {
    start(LineSubscriber {
        most: LevelFilter::WARN,
        wanted: |_| true,
        function: None,
        writer: || Box::new(io::stderr().lock()),
    });
}

/// Logs audit lines alone, to standard error, for a program that makes changes.
pub fn audit_to_stderr() {
    start(LineSubscriber {
        most: LevelFilter::INFO,
        wanted: is_audit,
        function: None,
        writer: || Box::new(io::stderr().lock()),
    });
}

fn is_audit(event: &Metadata<'_>) -> bool {
    event.target() == AUDIT
}

fn start(lines: LineSubscriber) {
    // A second call, as in tests, has no effect.
    let _ = tracing::subscriber::set_global_default(lines);
}

/// The member that names the function.
pub(crate) const FUNCTION: &str = "FunctionName";
/// The target of wide events. Such an event has one field: the finished text of [`Members`].
pub(crate) const WIDE: &str = "wide";

/// The members about the current invocation, which every line carries.
static INVOCATION: RwLock<String> = RwLock::new(String::new());

/// Writes each event as a line.
struct LineSubscriber {
    /// Events of a more verbose level are left out.
    most: LevelFilter,
    /// Decides whether one of the other events is written.
    wanted: fn(&Metadata<'_>) -> bool,
    /// The function's name, added to every line that is not wide.
    function: Option<String>,
    writer: fn() -> Box<dyn Write>,
}

/// Sets the invocation that all lines from now on belong to. This works because an instance handles one invocation at
/// a time. The trace's id is added only if the trace is recorded.
pub fn set_invocation(request_id: &str, trace_header: Option<&str>) {
    let mut members = Members::default();
    members.push("lambda_request_id", request_id);
    if let Some(trace_id) = trace_header.and_then(recorded_trace) {
        members.push("trace_id", trace_id);
    }
    *INVOCATION.write().unwrap_or_else(PoisonError::into_inner) = members.into_text();
}

/// Reads the trace's id from a header such as `Root=1-…;Parent=…;Sampled=1`. An unsampled trace has none.
fn recorded_trace(header: &str) -> Option<&str> {
    let part = |name: &str| header.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    part("Sampled").filter(|sampled| *sampled == "1").and(part("Root"))
}

impl Subscriber for LineSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.most && (self.wanted)(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event, self.function.as_deref(), SystemClock::new().now());
        // If the log cannot be written, there is no place to report it.
        let _ = (self.writer)().write_all(line.as_bytes());
    }

    /// Never called, because no span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Writes an event as a line: time, level, invocation, function, and the event's fields. A wide event brings the
/// function's name among its own members.
fn line(event: &Event<'_>, function: Option<&str>, now: Timestamp) -> String {
    let mut members = Members::default();
    members.push("timestamp", &now.to_string());
    members.push("level", event.metadata().level().as_str());
    members.extend(&INVOCATION.read().unwrap_or_else(PoisonError::into_inner));
    if event.metadata().target() == WIDE {
        event.record(&mut Spread(&mut members));
    } else {
        if let Some(function) = function {
            members.push(FUNCTION, function);
        }
        event.record(&mut members);
    }
    format!("{{{}}}\n", members.into_text())
}

/// Appends the text of a wide event as it is, because it already consists of members.
struct Spread<'a>(&'a mut Members);

impl Visit for Spread<'_> {
    fn record_str(&mut self, _: &Field, value: &str) {
        self.0.extend(value);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// The members of a JSON object in the order in which they were added, without the braces. The caller must not add a
/// name twice.
#[derive(Debug, Default)]
pub(crate) struct Members(String);

impl Members {
    /// Appends a member. A value that JSON cannot hold becomes `null`.
    pub(crate) fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.separate();
        self.0.push_str(&serde_json::Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(&json);
    }

    /// Appends members that are already written as text.
    pub(crate) fn extend(&mut self, members: &str) {
        if !members.is_empty() {
            self.separate();
            self.0.push_str(members);
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn separate(&mut self) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
    }
}

/// Appends each field of a `tracing` event.
impl Visit for Members {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.push(field.name(), &value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.push(field.name(), &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    struct Paper;

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Runs `events` and returns the lines that were written, each without its time.
    fn written(most: LevelFilter, wanted: fn(&Metadata<'_>) -> bool, events: impl FnOnce()) -> Vec<String> {
        let function = Some("me".to_owned());
        let lines = LineSubscriber { most, wanted, function, writer: || Box::new(Paper) };
        tracing::subscriber::with_default(lines, events);
        let text = String::from_utf8(WRITTEN.take()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        let untimed = |line: &str| {
            let rest = line.strip_prefix(r#"{"timestamp":""#).unwrap();
            let (at, rest) = rest.split_once('"').unwrap();
            assert!(at.parse::<Timestamp>().is_ok(), "{at}");
            rest.to_owned()
        };
        text.lines().map(untimed).collect()
    }

    /// A single test covers all of this, because the invocation is global to the process.
    #[test]
    fn each_event_is_a_flat_line_with_level_and_invocation() {
        let told = written(
            LevelFilter::INFO,
            |_| true,
            || {
                let error: Box<dyn std::error::Error> = "it \"broke\"\n".into();
                tracing::warn!(
                    number = 7,
                    negative = -1_i8,
                    share = 0.5,
                    yes = true,
                    nobody = None::<&str>,
                    "with {}",
                    "fields"
                );
                tracing::debug!("too fine");
                let _span = tracing::error_span!("around", hidden = 1).entered();
                tracing::error!(error = &*error, shown = ?Some(1));
                set_invocation("one", Some("Root=1-abc;Parent=2;Sampled=0"));
                tracing::info!(target: WIDE, members = r#""message":"request","latency_ms":1"#);
                set_invocation("two", Some("Root=1-abc;Parent=2;Sampled=1"));
                tracing::info!("done");
            },
        );
        let expected = [
            r#","level":"WARN","FunctionName":"me","message":"with fields","number":7,"negative":-1,"share":0.5,"yes":true}"#,
            r#","level":"ERROR","FunctionName":"me","error":"it \"broke\"\n","shown":"Some(1)"}"#,
            r#","level":"INFO","lambda_request_id":"one","message":"request","latency_ms":1}"#,
            r#","level":"INFO","lambda_request_id":"two","trace_id":"1-abc","FunctionName":"me","message":"done"}"#,
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn the_level_that_lambda_sets_is_heeded_but_nothing_finer_than_info() {
        let levels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"].map(most);
        let (info, error) = (LevelFilter::INFO, LevelFilter::ERROR);
        assert_eq!(levels, [info, info, info, LevelFilter::WARN, error, error]);
    }

    #[test]
    fn what_is_not_wanted_is_left_out() {
        let told = written(LevelFilter::WARN, crate::logging::is_audit, || {
            tracing::warn!(target: crate::logging::AUDIT, "changed");
            tracing::error!("broken");
            tracing::info!(target: crate::logging::AUDIT, "too fine");
        });
        assert!(matches!(&told[..], [line] if line.ends_with(r#""message":"changed"}"#)), "{told:?}");
    }
}
