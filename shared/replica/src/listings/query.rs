//! What is asked of the listings.

use types::ids::VariantId;
use types::money::Usd;

/// The order of a page of listings (specification 4.9.2). Listings of the same price stand newest first, and listings
/// of the same time in the order of their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Latest first.
    #[default]
    Newest,
    /// Cheapest first.
    PriceAsc,
    /// Most expensive first.
    PriceDesc,
}

/// A query of the listings (specification 4.9.1). The bounds are inclusive.
#[derive(Clone, Debug, Default)]
pub struct ListingQuery {
    /// Only listings of this item.
    pub item_id: Option<String>,
    /// Only listings of this variant.
    pub variant_id: Option<VariantId>,
    /// Only listings at this price or above.
    pub min_price: Option<Usd>,
    /// Only listings at this price or below.
    pub max_price: Option<Usd>,
    pub sort: Sort,
}
