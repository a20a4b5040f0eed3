//! What a reset of a version did.

use serde::Serialize;

/// A version that was set to 0.
#[derive(Debug, Serialize)]
pub(super) struct ResetReport {
    /// Kind and id.
    pub(super) entity: String,
    /// The version that it had.
    pub(super) version: u64,
}

impl ResetReport {
    pub(super) fn text(&self) -> String {
        let Self { entity, version } = self;
        format!("The version of {entity} was {version}, and is now 0. Send its newest message again.")
    }
}
