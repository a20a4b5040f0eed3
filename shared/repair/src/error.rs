//! Why a repair ended early.

use platform::store::StoreError;
use thiserror::Error;

/// Why a repair ended early. What it did until then holds.
#[derive(Debug, Error)]
pub enum RepairError {
    /// Somebody wrote to the stream of this name.
    #[error("the stream {0} was written to during the repair")]
    Written(&'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}
