//! Structured logs: one JSON object per line.

use tracing::Level;
use tracing_subscriber::fmt;

/// Logs to standard output, as Lambda wants it.
pub fn to_stdout() {
    let subscriber = fmt().json().flatten_event(true).with_target(false).with_max_level(Level::INFO);
    // A second call, as in tests, keeps the first subscriber.
    let _ = subscriber.try_init();
}

/// Logs warnings and errors to standard error, for programs whose standard output is their result.
pub fn to_stderr() {
    let subscriber = fmt().json().flatten_event(true).with_target(false).with_max_level(Level::WARN);
    let _ = subscriber.with_writer(std::io::stderr).try_init();
}
