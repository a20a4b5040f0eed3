//! How a repair runs: what it may do, how far it is, and why it ends early.

use common::store::StoreError;
use thiserror::Error;

/// What a repair may do, and what it must.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// It only looks, and writes nothing.
    pub dry_run: bool,
    /// The streams, the numbers of orders and the epochs of endpoints begin anew even if they are in line, because
    /// instances and the marketplace may remember what came after the moment to which a table was restored.
    pub restored: bool,
}

/// How far a repair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It compares the stream of this name with its entities.
    Comparing(&'static str),
    /// It writes a new base of the stream of this name.
    Writing(&'static str),
    /// It looks at the rows of accounts.
    Scanning {
        /// The number of rows that it has looked at.
        rows: u64,
        /// About how many there are, if that is known.
        of: Option<u64>,
    },
    /// It looks at the orders of users. It is done with `done` users of all `of`.
    Users { done: u64, of: u64 },
    /// The number of keys that it has looked at.
    Keys { keys: u64 },
    /// The number of webhook endpoints that it has looked at.
    Endpoints { endpoints: u64 },
}

/// Why a repair ended early. What it did until then holds.
#[derive(Debug, Error)]
pub enum RepairError {
    /// Somebody wrote to the stream of this name.
    #[error("the stream {0} was written to during the repair")]
    Written(&'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}
