//! What a repair may do, and what it must.

/// What a repair may do, and what it must.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// It only looks, and writes nothing.
    pub dry_run: bool,
    /// The streams and the numbers of orders begin anew even if they are in line, because instances may remember what
    /// came after the moment to which their table was restored.
    pub restored: bool,
}
