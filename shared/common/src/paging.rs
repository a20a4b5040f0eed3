//! What a client may choose about a response: the page of a list, its order, and what it includes. Pages are numbered
//! from 1 and have 1 to 100 records (specification 4.3).

use serde::Serialize;

use crate::closed_enum;

/// The page that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// The page number, starting at 1.
    pub page: i64,
    /// Records per page, 1 to 100.
    pub page_size: i64,
}

impl Paging {
    /// The default number of records per page.
    pub const DEFAULT_SIZE: i64 = 50;
    /// The largest number of records per page.
    pub const MAX_SIZE: i64 = 100;

    /// Returns the number of records before this page. It saturates, far beyond any total.
    pub fn skip(self) -> usize {
        let before = (self.page.max(1) - 1).saturating_mul(self.page_size);
        usize::try_from(before).unwrap_or(usize::MAX)
    }

    /// Returns the number of records on a full page.
    pub fn take(self) -> usize {
        usize::try_from(self.page_size).unwrap_or_default()
    }

    /// Wraps the records of this page in its envelope.
    pub fn envelope<T>(self, items: Vec<T>, total: usize) -> Paged<T> {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        Paged { items, page: self.page, page_size: self.page_size, total }
    }
}

/// One page of records, and the number of records on all pages together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Paged<T> {
    /// The records of this page. Empty if the page is past the end.
    pub items: Vec<T>,
    /// The page number from the request, starting at 1.
    pub page: i64,
    /// The number of records per page from the request. The last page may have fewer.
    pub page_size: i64,
    /// The number of records on all pages together.
    pub total: i64,
}

closed_enum! {
    /// The order of a page of listings (specification 4.9.2). Listings with the same price are ordered newest first,
    /// and listings with the same time by their ids.
    pub enum Sort {
        /// Latest first.
        Newest = "newest",
        /// Cheapest first.
        PriceAsc = "price_asc",
        /// Most expensive first.
        PriceDesc = "price_desc",
    }
}

impl Sort {
    /// The order if the request names none.
    pub const DEFAULT: Self = Self::Newest;
}

impl Default for Sort {
    fn default() -> Self {
        Self::DEFAULT
    }
}

closed_enum! {
    /// What a response about an item includes on request (specification 4.6.3). Each is named like the field that the
    /// response then has.
    pub enum ItemInclude {
        /// The prices of each variant.
        Prices = "prices",
    }
}
