//! What a repair may do, and what it must.

/// What a repair may do, and what it must.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// It only looks, and writes nothing.
    pub dry_run: bool,
    /// The streams, the numbers of orders and the epochs of endpoints begin anew even if they are in line, because
    /// instances and the marketplace may remember what came after the moment to which a table was restored.
    pub restored: bool,
}
