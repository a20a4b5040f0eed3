//! The records of the public API (section 2 of the specification).
//!
//! These types serialise the responses. The OpenAPI description is generated from them too, and their doc comments are
//! its texts: write them for the developer of a client.

mod account;
mod listing;
mod market;

pub use account::{OrderSource, PublicBalance, PublicMe, PublicOrder, PublicOrderLine};
pub use listing::{ListingKind, ListingStatus, PublicListing};
pub use market::{IncludedPrices, PublicItem, PublicItemDetail, PublicMarketplace, PublicVariant, VariantPrices};
