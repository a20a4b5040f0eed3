//! The records of the public API (section 2 of the specification).
//!
//! These types serialise the responses. `functions/openapi/openapi.yaml` describes them to clients.

mod account;
mod listing;
mod market;

pub use account::{OrderSource, PublicBalance, PublicMe, PublicOrder, PublicOrderLine};
pub use listing::{ListingKind, ListingStatus, PublicListing};
pub use market::{IncludedPrices, PublicItem, PublicItemDetail, PublicMarketplace, PublicVariant, VariantPrices};
