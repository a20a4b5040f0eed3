//! How far a repair is.

/// How far a repair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It compares the stream of this name with its entities.
    Comparing(&'static str),
    /// It writes a new base of the stream of this name.
    Writing(&'static str),
    /// It has looked at so many rows of accounts.
    Scanning {
        rows: u64,
        /// About how many there are, if that is known.
        of: Option<u64>,
    },
    /// It has looked at the orders of so many users.
    Users { done: u64, of: u64 },
    /// It has looked at so many keys.
    Keys { keys: u64 },
    /// It has looked at so many webhook endpoints.
    Endpoints { endpoints: u64 },
}
