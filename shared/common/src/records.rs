//! The records of the public API (section 2 of the specification): items, marketplaces, prices and listings, and what
//! belongs to the caller.
//!
//! These types serialise the responses. `functions/openapi/openapi.yaml` describes them to clients.

use serde::{Deserialize, Serialize};

use crate::closed_enum;
use crate::ids::{
    Id8, ItemId, ItemKind, KeyId, Label, Link, ListingId, MarketplaceKey, MarketplaceKind, OrderId, OrderStatus,
    UserId, VariantId,
};
use crate::money::Usd;
use crate::scope::{Scopes, Tier};
use crate::timestamp::Timestamp;

/// An item of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicItem {
    /// The item's id: 1 to 128 letters, digits, `.`, `_`, `~` or `-`.
    pub id: ItemId,
    /// The item's kind. Known values include `skin`, `sticker`, `case` and `agent`; the list is open-ended.
    pub kind: ItemKind,
    /// The item's name, or null if it is unknown.
    pub name: Option<Label>,
    /// The item's name in a form for URLs, or null if it is unknown.
    pub slug: Option<Label>,
    /// The `http` or `https` URL of a picture, or null if it is unknown.
    pub image: Option<Link>,
}

impl PublicItem {
    /// Returns the key that the catalog is ordered by: name, then id. Items without a name come last.
    pub fn catalog_key(&self) -> (bool, &str, &str) {
        let name = self.name.as_ref();
        (name.is_none(), name.map_or("", |name| name.as_str()), self.id.as_str())
    }
}

/// An item with its variants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicItemDetail {
    /// The item, as in the catalog.
    #[serde(flatten)]
    pub item: PublicItem,
    /// The item's variants, at most 500.
    pub variants: Vec<PublicVariant>,
}

/// A variant of an item: the item combined with a wear and a StatTrak flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicVariant {
    /// The variant's id.
    pub variant_id: VariantId,
    /// The variant's wear, or null for items that do not wear.
    pub wear: Option<Label>,
    /// Whether the variant is StatTrak: it counts kills.
    pub stattrak: bool,
    /// The name that external marketplaces use, or null if it is unknown.
    pub market_hash_name: Option<Label>,
    /// The same figures as from `/v1/public/prices/{variant_id}`, or null if there are none. Present only if the
    /// request has `include=prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<IncludedPrices>,
}

/// The prices of a variant in a response that includes them, or `None` if no ask counts. What is stored never has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IncludedPrices(pub Option<VariantPrices>);

/// A marketplace that prices can come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicMarketplace {
    /// The marketplace's key, as in the `source_keys` of prices.
    pub key: MarketplaceKey,
    /// The marketplace's name, for people to read.
    pub name: Label,
    /// The marketplace's `http` or `https` URL.
    pub link: Link,
    /// How the marketplace sells. The list is open-ended.
    pub kind: MarketplaceKind,
    /// Whether the marketplace's asks count in the prices.
    pub enabled: bool,
}

/// Figures over all asks of enabled marketplaces in the last 24 hours. If there are no asks, the response is a 404, so
/// only `recommended_list_usd` can be null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantPrices {
    /// The variant's id.
    pub variant_id: VariantId,
    /// The number of asks that the figures come from.
    pub sample_size: i32,
    /// The keys of the marketplaces that the figures come from, sorted.
    pub source_keys: Vec<MarketplaceKey>,
    /// The lowest ask in US dollars.
    pub lowest_usd: Option<Usd>,
    /// The mean ask in US dollars, rounded half to even to whole cents.
    pub mean_usd: Option<Usd>,
    /// The median ask in US dollars, rounded half to even to whole cents.
    pub median_usd: Option<Usd>,
    /// A suggested price in US dollars: one cent below the lowest ask that lies between half and twice the median, but
    /// at least 0.01. Null if there are fewer than three asks.
    pub recommended_list_usd: Option<Usd>,
}

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

/// What happened to a listing: exactly one of `listing` and `removed` is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingChange {
    /// The position in the log of changes. Changes that were committed together share one.
    pub position: u64,
    /// The listing after the change, if it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listing: Option<PublicListing>,
    /// The listing's id, if it is no longer active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<ListingId>,
}

/// A page of changes of the active listings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingChanges {
    /// The changes, oldest first, at most 1,000.
    pub changes: Vec<ListingChange>,
    /// The position of the page's end: the next request's `after`.
    pub position: u64,
    /// Whether more changes follow at once.
    pub more: bool,
}

/// The API key of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicMe {
    /// The key's id. It is not the secret `sk_` text.
    pub api_key_id: KeyId,
    /// The id of the account that owns the key.
    pub user_id: UserId,
    /// The key's tier.
    pub tier: Tier,
    /// The scopes that the key carries.
    pub scopes: Scopes,
    /// Requests allowed per minute, for each scope separately.
    pub rate_limit_per_minute: u32,
}

closed_enum! {
    /// How an order came about. The list is closed.
    pub enum OrderSource {
        /// Bought at a listing's price.
        Checkout = "checkout",
        /// Won in an auction.
        Auction = "auction",
        /// An accepted offer.
        Offer = "offer",
        /// A filled buy order.
        BuyOrder = "buy_order",
        /// A trade.
        Trade = "trade",
    }
}

/// One of the caller's orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicOrder {
    /// The order's id.
    pub id: OrderId,
    /// The order's status. Known values are `awaiting_delivery`, `delivered` and `refunded`; the list is open-ended.
    pub status: OrderStatus,
    /// How the order came about.
    pub source: OrderSource,
    /// The order's total in US dollars.
    pub total_usd: Usd,
    /// When the order was placed, in UTC.
    pub created_at: Timestamp,
    /// When the order was delivered, in UTC; null until then.
    pub delivered_at: Option<Timestamp>,
    /// The listings bought in the order, at most 200.
    pub items: Vec<PublicOrderLine>,
}

/// A listing bought in an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicOrderLine {
    /// The listing's id.
    pub listing_id: ListingId,
    /// The price paid for the listing, in US dollars.
    pub price_usd: Usd,
    /// The id of the listing's item, or null if it is unknown.
    pub item_id: Option<ItemId>,
}

/// The account's balance. All amounts are in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicBalance {
    /// Can be spent on the marketplace: store balance plus trade balance.
    pub available_usd: Usd,
    /// The store balance: can be spent and withdrawn.
    pub store_usd: Usd,
    /// The trade balance: from sales and trades that are still in the external platform's trade protection or in P2P
    /// escrow. It can be spent, and is spent first. It can be withdrawn once it becomes store balance.
    pub trade_usd: Usd,
    /// The most that a withdrawal can take right now.
    pub withdrawable_usd: Usd,
    /// Set aside for your leading bids and open offers.
    pub held_usd: Usd,
    /// Payouts of P2P sales in escrow that the external platform has not confirmed yet.
    pub escrow_usd: Usd,
}
