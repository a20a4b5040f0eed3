//! The parameters `page` and `page_size` (specification 4.2.1 and 4.3).

use common::paging::Paging;

use super::params::{Input, Params, integer};

/// The query parameter for the page number.
pub const PAGE: &str = "page";
/// The query parameter for the number of records per page.
pub const PAGE_SIZE: &str = "page_size";

/// Reads `page` and `page_size`, each with its default if it is absent.
pub fn paging(params: &mut Params<'_>) -> Paging {
    let page = params.query(PAGE, |v| integer(v, 1, None)).unwrap_or(1);
    let page_size = params.query(PAGE_SIZE, |v| integer(v, 1, Some(Paging::MAX_SIZE))).unwrap_or(Paging::DEFAULT_SIZE);
    Paging { page, page_size }
}

/// The input of an endpoint whose only parameters are those of a page.
impl Input for Paging {
    const QUERY: &'static [&'static str] = &[PAGE, PAGE_SIZE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        Some(paging(params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::parse;
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
