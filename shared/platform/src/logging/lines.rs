//! The subscriber: each event is a line, and spans are nothing.

use std::io::Write;
use std::sync::{PoisonError, RwLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{FUNCTION, Members};
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

/// The target of events whose one field is the text of [`Members`].
pub(crate) const WIDE: &str = "wide";

/// What every line of an invocation tells of it.
static INVOCATION: RwLock<String> = RwLock::new(String::new());

/// Writes each event as a line.
pub(super) struct Lines {
    /// Levels beyond are left out.
    pub(super) most: LevelFilter,
    /// Which of the others are not.
    pub(super) wanted: fn(&Metadata<'_>) -> bool,
    /// Which function's lines they are.
    pub(super) function: Option<String>,
    pub(super) writer: fn() -> Box<dyn Write>,
}

/// Says which invocation the lines from here on belong to, for an instance that handles one at a time. The trace is
/// named if it is recorded.
pub fn set_invocation(request_id: &str, trace_header: Option<&str>) {
    let mut members = Members::default();
    members.push("lambda_request_id", request_id);
    if let Some(trace_id) = trace_header.and_then(recorded_trace) {
        members.push("trace_id", trace_id);
    }
    *INVOCATION.write().unwrap_or_else(PoisonError::into_inner) = members.into_text();
}

/// The trace's id out of a header such as `Root=1-…;Parent=…;Sampled=1`.
fn recorded_trace(header: &str) -> Option<&str> {
    let part = |name: &str| header.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    part("Sampled").filter(|sampled| *sampled == "1").and(part("Root"))
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.most && (self.wanted)(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event, self.function.as_deref(), SystemClock::new().now());
        // Where a log cannot be written, nobody can be told of it.
        let _ = (self.writer)().write_all(line.as_bytes());
    }

    /// Never called, for no span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The line of an event: when, how bad, in which invocation, and its fields. A wide one tells the function itself.
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

/// Takes a text as the members that it is.
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
