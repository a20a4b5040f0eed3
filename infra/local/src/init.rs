//! The init phase of functions in this process: as under Lambda, but that they run whatever is found.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use platform::preflight::Preflight;

/// Preflight at what each function uses, and tells of every problem at once; many have the same.
pub(crate) async fn run(checks: Vec<Preflight>) {
    let found = join_all(checks.into_iter().map(Preflight::run)).await;
    let problems: BTreeSet<_> = found.into_iter().flat_map(|found| found.unwrap_or_else(|wrong| wrong.0)).collect();
    if !problems.is_empty() {
        let problems = problems.into_iter().collect::<Vec<_>>().join("; ");
        tracing::error!(problems, "not everything can be used");
    }
}

/// Tells of a function that could not prepare itself.
pub(crate) fn tell(warmed: Result<(), String>) {
    if let Err(reason) = warmed {
        tracing::warn!(reason, "not ready yet");
    }
}
