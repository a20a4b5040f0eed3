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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicListing {
    /// The listing's id.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21")))]
    pub id: ListingId,
    /// The short id used in links of the form `/l/{id8}`: eight lower-case hex digits.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9a-f]{8}$", examples("a1b2c3d4")))]
    pub id8: Id8,
    /// The price in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("12.50")))]
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
    /// Whether the listing is an auction.
    #[cfg_attr(feature = "schema", schema(examples(false)))]
    pub is_auction: bool,
    /// When the listing went live, in UTC.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime, examples("2026-11-20T10:00:00.000Z")))]
    pub created_at: Timestamp,
    /// The id of the listing's item, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("ak-47-redline")))]
    pub item_id: Option<ItemId>,
    /// The id of the listing's variant, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<uuid::Uuid>, examples("4f2c1f4e-6a57-5c0e-9d3a-0f6f0a3c7a11")))]
    pub variant_id: Option<VariantId>,
    /// The name that external marketplaces use, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("AK-47 | Redline (Field-Tested)")))]
    pub market_hash_name: Option<Label>,
}
