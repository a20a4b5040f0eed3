//! Structured logs: one flat JSON object per line, with `timestamp` and `level` as in Lambda's JSON log format.

mod json;
mod lines;

use std::io;
use std::panic::{self, PanicHookInfo};

use tracing::Metadata;
use tracing::level_filters::LevelFilter;

pub(crate) use json::Members;
use lines::LineSubscriber;
pub use lines::set_invocation;
pub(crate) use lines::{FUNCTION, WIDE};

use super::aws::Lookup;

/// The environment variable in which Lambda gives the function's name.
pub const FUNCTION_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// The target of audit lines, which say who changed what.
pub const AUDIT: &str = "audit";

/// Logs to standard output, where Lambda reads logs. All functions share a log group, so each line names its function.
pub fn to_stdout(lookup: Lookup<'_>) {
    let function = lookup(FUNCTION_VARIABLE);
    start(LineSubscriber {
        most: LevelFilter::INFO,
        wanted: is_our_own,
        function,
        writer: || Box::new(io::stdout().lock()),
    });
    panic::set_hook(Box::new(log_panic));
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
