//! What is asked of the listings.

use common::ids::VariantId;
use common::money::Usd;
use common::paging::Sort;

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
