//! The orders of a list.

use crate::closed_enum;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_pinned() {
        assert_eq!(Sort::ALL.map(Sort::as_str), ["newest", "price_asc", "price_desc"]);
        assert_eq!(Sort::default(), Sort::Newest);
    }
}
