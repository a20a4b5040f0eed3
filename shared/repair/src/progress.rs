//! How far a repair is.

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
