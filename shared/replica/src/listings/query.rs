//! What is asked of the listings.

use types::ids::VariantId;
use types::money::Usd;

/// The order of a page of listings. Ties: newest first, then by id.
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

/// What is asked of the listings; bounds are inclusive.
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
    /// The order.
    pub sort: Sort,
}
