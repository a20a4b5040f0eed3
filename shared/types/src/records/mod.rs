//! The records of the public API (specification, section 2): the types that serialise the answers, from
//! which the OpenAPI description is generated too.

mod account;
mod listing;
mod market;

pub use account::{OrderSource, PublicBalance, PublicMe, PublicOrder, PublicOrderLine};
pub use listing::{ListingKind, PublicListing};
pub use market::{PublicItem, PublicItemDetail, PublicMarketplace, PublicVariant, VariantPrices};
