//! What is kept of an attempt.

use serde::{Deserialize, Serialize};

use types::timestamp::Timestamp;

/// A recorded attempt, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was sent.
    pub at: Timestamp,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// From the beginning to the answer's headers, or to the failure.
    pub latency_ms: u32,
    /// What went wrong, if anything.
    pub error: Option<String>,
    /// The beginning of the answer to an attempt that failed, at most 1 KB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

impl Attempt {
    /// An attempt that was claimed and never recorded, as after a crash: nobody knows what came of it.
    pub fn lost(at: Timestamp) -> Self {
        Self { at, status: None, latency_ms: 0, error: Some("no result".to_owned()), response: None }
    }

    /// Whether the endpoint acknowledged it: any 2xx (specification, section 6).
    pub fn is_acknowledged(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}
