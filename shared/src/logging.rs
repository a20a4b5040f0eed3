//! Structured logs: one JSON object per line.

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Logs to standard output, as Lambda wants it.
pub fn to_stdout() {
    let subscriber = fmt().json().flatten_event(true).with_target(false).with_max_level(Level::INFO);
    // A second call, as in tests, keeps the first subscriber.
    let _ = subscriber.try_init();
}

/// Logs warnings and errors to standard error, for programs whose standard output is their result. The
/// embedded DynamoDB warns of every condition that fails, which is an answer here and no event.
pub fn to_stderr() {
    let lines = fmt::layer().json().flatten_event(true).with_target(false).with_writer(std::io::stderr);
    let levels = Targets::new().with_default(Level::WARN).with_target("dynoxide", Level::ERROR);
    let _ = tracing_subscriber::registry().with(lines).with(levels).try_init();
}
