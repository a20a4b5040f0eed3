//! Structured logs: one JSON object per line, flat, with `timestamp` and `level` as Lambda's JSON log format wants
//! them.

mod json;
mod lines;

use std::io;
use std::panic::{self, PanicHookInfo};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

pub(crate) use json::Members;
use lines::Lines;
pub(crate) use lines::WIDE;
pub use lines::set_invocation;

use super::aws::Lookup;

/// The member that names the function.
pub(crate) const FUNCTION: &str = "FunctionName";
/// The variable in which Lambda names the function.
pub const FUNCTION_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// Logs to standard output, as Lambda wants it. Functions share a log group, so that each line names its own.
pub fn to_stdout(lookup: Lookup<'_>) {
    let function = lookup(FUNCTION_VARIABLE);
    start(Lines { most: LevelFilter::INFO, wanted: is_our_own, function, writer: || Box::new(io::stdout().lock()) });
    panic::set_hook(Box::new(tell));
}

/// The runtime tells once more what a function has told of a panic or an error.
fn is_our_own(event: &Metadata<'_>) -> bool {
    event.target() != "lambda_runtime::layers::panic"
}

/// Tells a panic in a line. Its message is told only if it is fixed: what is written into another may be a secret.
fn tell(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(tracing::field::display);
    let text = panic.payload().downcast_ref::<&'static str>();
    tracing::error!(place, text, "panicked");
}

/// Logs warnings and errors to standard error, for programs whose standard output is their result.
pub fn to_stderr() {
    start(Lines { most: LevelFilter::WARN, wanted: is_news, function: None, writer: || Box::new(io::stderr().lock()) });
}

/// The embedded DynamoDB warns of every condition that fails, which is an answer here and no event.
fn is_news(event: &Metadata<'_>) -> bool {
    *event.level() == Level::ERROR || !event.target().starts_with("dynoxide")
}

fn start(lines: Lines) {
    // A second call, as in tests, keeps the first one's.
    let _ = tracing::subscriber::set_global_default(lines);
}
