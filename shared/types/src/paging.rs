//! Paging: one-based pages of 1 to 100 records (specification, section 8).

use serde::Serialize;

/// Which page of how many records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// One-based page number.
    pub page: i64,
    /// Records per page, 1 to 100.
    pub page_size: i64,
}

impl Paging {
    /// Records per page unless told otherwise.
    pub const DEFAULT_SIZE: i64 = 50;
    /// Records per page at most.
    pub const MAX_SIZE: i64 = 100;

    /// Records before this page; saturates far beyond any total.
    pub fn skip(self) -> usize {
        let before = (self.page.max(1) - 1).saturating_mul(self.page_size);
        usize::try_from(before).unwrap_or(usize::MAX)
    }

    /// Records on a full page.
    pub fn take(self) -> usize {
        usize::try_from(self.page_size).unwrap_or_default()
    }

    /// The envelope of this page.
    pub fn envelope<T>(self, items: Vec<T>, total: usize) -> Paged<T> {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        Paged { items, page: self.page, page_size: self.page_size, total }
    }
}

/// One page of records, and how many records there are in all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Paged<T> {
    /// The records of this page; empty past the end.
    pub items: Vec<T>,
    /// One-based page number, as asked for.
    #[cfg_attr(feature = "schema", schema(minimum = 1, examples(1)))]
    pub page: i64,
    /// Records per page, as asked for.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 100, examples(50)))]
    pub page_size: i64,
    /// Records on all pages together.
    #[cfg_attr(feature = "schema", schema(minimum = 0, examples(2317)))]
    pub total: i64,
}
