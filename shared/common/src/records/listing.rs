//! Active listings.

use serde::{Deserialize, Serialize};

use crate::closed_enum;
use crate::ids::{Id8, ItemId, Label, ListingId, VariantId};
use crate::money::Usd;
use crate::timestamp::Timestamp;

closed_enum! {
    /// How a listing is delivered: `bot` (instant delivery) or `p2p` (escrow). The list is closed.
    pub enum ListingKind {
        /// Instant delivery.
        Bot = "bot",
        /// Escrow.
        P2p = "p2p",
    }
}

closed_enum! {
    /// What has become of a listing. Only active ones are shown.
    pub enum ListingStatus {
        Active = "active",
        Sold = "sold",
        Cancelled = "cancelled",
    }
}

/// An active listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicListing {
    /// The listing's id.
    pub id: ListingId,
    /// The short id used in links of the form `/l/{id8}`: eight lower-case hex digits.
    pub id8: Id8,
    /// The price in US dollars.
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
    /// Whether the listing is an auction.
    pub is_auction: bool,
    /// When the listing went live, in UTC.
    pub created_at: Timestamp,
    /// The id of the listing's item, or null if it is unknown.
    pub item_id: Option<ItemId>,
    /// The id of the listing's variant, or null if it is unknown.
    pub variant_id: Option<VariantId>,
    /// The name that external marketplaces use, or null if it is unknown.
    pub market_hash_name: Option<Label>,
}
