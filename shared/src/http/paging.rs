//! Paging: one-based pages of 1 to 100 records (specification, section 8).

use serde::Serialize;
use utoipa::ToSchema;

use super::params::{Input, Params, integer};

/// The parameter that names a page.
pub const PAGE: &str = "page";
/// The parameter that says how many records a page has.
pub const PAGE_SIZE: &str = "page_size";

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

    /// Reads `page` and `page_size`.
    pub fn of(params: &mut Params<'_>) -> Self {
        let page = params.query(PAGE, |v| integer(v, 1, None)).unwrap_or(1);
        let page_size = params.query(PAGE_SIZE, |v| integer(v, 1, Some(Self::MAX_SIZE))).unwrap_or(Self::DEFAULT_SIZE);
        Self { page, page_size }
    }

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

/// An endpoint that takes nothing but a page.
impl Input for Paging {
    const QUERY: &'static [&'static str] = &[PAGE, PAGE_SIZE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        Some(Self::of(params))
    }
}

/// One page of records, and how many records there are in all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Paged<T> {
    /// The records of this page; empty past the end.
    pub items: Vec<T>,
    /// One-based page number, as asked for.
    #[schema(minimum = 1, examples(1))]
    pub page: i64,
    /// Records per page, as asked for.
    #[schema(minimum = 1, maximum = 100, examples(50))]
    pub page_size: i64,
    /// Records on all pages together.
    #[schema(minimum = 0, examples(2317))]
    pub total: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::params::parse;
    use proptest::prelude::*;

    fn read(query: &str) -> Option<Paging> {
        parse::<Paging>(&[], query).ok()
    }

    #[test]
    fn the_farthest_page_overflows_nothing() {
        let far = read("page=9223372036854775807&page_size=100").unwrap();
        assert_eq!(far.skip(), usize::try_from(i64::MAX).unwrap());
        assert_eq!(read("page=9223372036854775808"), None);
    }

    proptest! {
        #[test]
        fn pages_cut_a_list_like_chunks(total in 0usize..400, size in 1i64..=100) {
            let all: Vec<usize> = (0..total).collect();
            let pages = all.chunks(usize::try_from(size).unwrap()).collect::<Vec<_>>();
            for (number, expected) in pages.iter().enumerate() {
                let paging = read(&format!("page_size={size}&page={}", number + 1)).unwrap();
                let page: Vec<usize> = all.iter().copied().skip(paging.skip()).take(paging.take()).collect();
                prop_assert_eq!(&page, expected);
            }
        }

        #[test]
        fn only_bounds_decide(page in any::<i64>(), size in any::<i64>()) {
            let read = read(&format!("page={page}&page_size={size}"));
            prop_assert_eq!(read.is_some(), page >= 1 && (1..=100).contains(&size));
        }
    }
}
