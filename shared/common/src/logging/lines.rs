//! The `tracing` subscriber. It writes each event as a line and ignores spans.

use std::io::Write;
use std::sync::{PoisonError, RwLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::Members;
use crate::clock::{Clock, SystemClock};
use crate::timestamp::Timestamp;

/// The member that names the function.
pub(crate) const FUNCTION: &str = "FunctionName";
/// The target of wide events. Such an event has one field: the finished text of [`Members`].
pub(crate) const WIDE: &str = "wide";

/// The members about the current invocation, which every line carries.
static INVOCATION: RwLock<String> = RwLock::new(String::new());

/// Writes each event as a line.
pub(super) struct LineSubscriber {
    /// Events of a more verbose level are left out.
    pub(super) most: LevelFilter,
    /// Decides whether one of the other events is written.
    pub(super) wanted: fn(&Metadata<'_>) -> bool,
    /// The function's name, added to every line that is not wide.
    pub(super) function: Option<String>,
    pub(super) writer: fn() -> Box<dyn Write>,
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

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
