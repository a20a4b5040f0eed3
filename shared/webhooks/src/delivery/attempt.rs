//! The record of an attempt (specification 2.13.2).

use serde::{Deserialize, Serialize};

use types::timestamp::Timestamp;

/// A recorded attempt, as the endpoint's owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// When the attempt was sent.
    pub at: Timestamp,
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// The milliseconds from the beginning of the attempt to the answer's headers, or to the failure.
    pub latency_ms: u32,
    /// What went wrong, if anything.
    pub error: Option<String>,
    /// The first part of the answer's body, at most 1 KB, if the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

impl Attempt {
    /// Returns an attempt that was claimed and never recorded, for example because of a crash (specification 6.7.5).
    /// Its outcome is unknown.
    pub fn lost(at: Timestamp) -> Self {
        Self { at, status: None, latency_ms: 0, error: Some("no result".to_owned()), response: None }
    }

    /// Returns whether the endpoint acknowledged it. Any 2xx status is an acknowledgement (specification 6.7.1).
    pub fn is_acknowledged(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}
