//! The kinds of items. Each has a number, by which the items name it.

/// The number of a kind.
pub(super) type KindNumber = u32;
