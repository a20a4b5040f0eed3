//! The init phase of functions in this process. It is as in Lambda, except that a problem does not stop a function.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use platform::preflight::Preflight;

/// Checks what each function uses and logs all problems in one line. A problem that several functions have is named
/// once.
pub(crate) async fn run(checks: Vec<Preflight>) {
    let found = join_all(checks.into_iter().map(Preflight::run)).await;
    let problems: BTreeSet<_> = found.into_iter().flat_map(|found| found.unwrap_or_else(|wrong| wrong.0)).collect();
    if !problems.is_empty() {
        let problems = problems.into_iter().collect::<Vec<_>>().join("; ");
        tracing::error!(problems, "some resources cannot be used");
    }
}

/// Logs why a function could not prepare itself, if so.
pub(crate) fn log_failed_warm_up(warmed: Result<(), String>) {
    if let Err(reason) = warmed {
        tracing::warn!(reason, "a function is not ready yet");
    }
}
