//! The caller's own records: key, orders, balance.

use serde::{Deserialize, Serialize};

use crate::closed_enum;
use crate::ids::{ItemId, KeyId, ListingId, OrderId, OrderStatus, UserId};
use crate::money::Usd;
use crate::scope::{Scopes, Tier};
use crate::timestamp::Timestamp;

/// The API key of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicMe {
    /// The key's id. It is not the secret `sk_` text.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("9a1c6f0e-2f7d-4c3b-9a55-5d0f3b1f7c10")))]
    pub api_key_id: KeyId,
    /// The id of the account that owns the key.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("3e0b1a8c-1f7a-4b58-8f0b-6c3d2a1e9f00")))]
    pub user_id: UserId,
    /// The key's tier.
    pub tier: Tier,
    /// The scopes that the key carries.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<crate::scope::Scope>))]
    pub scopes: Scopes,
    /// Requests allowed per minute, for each scope separately.
    #[cfg_attr(feature = "schema", schema(value_type = i32, minimum = 0, examples(60)))]
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicOrder {
    /// The order's id.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("7d2f4a90-58c1-4f0e-8a35-1c9be0a4d6f2")))]
    pub id: OrderId,
    /// The order's status. Known values are `awaiting_delivery`, `delivered` and `refunded`; the list is open-ended.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[a-z0-9_]{1,32}$", examples("delivered")))]
    pub status: OrderStatus,
    /// How the order came about.
    pub source: OrderSource,
    /// The order's total in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("12.50")))]
    pub total_usd: Usd,
    /// When the order was placed, in UTC.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime, examples("2026-11-20T10:00:00.000Z")))]
    pub created_at: Timestamp,
    /// When the order was delivered, in UTC; null until then.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, format = DateTime, examples("2026-11-20T10:04:31.250Z")))]
    pub delivered_at: Option<Timestamp>,
    /// The listings bought in the order, at most 200.
    pub items: Vec<PublicOrderLine>,
}

/// A listing bought in an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PublicOrderLine {
    /// The listing's id.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid, examples("0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21")))]
    pub listing_id: ListingId,
    /// The price paid for the listing, in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("12.50")))]
    pub price_usd: Usd,
    /// The id of the listing's item, or null if it is unknown.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<String>, examples("ak-47-redline")))]
    pub item_id: Option<ItemId>,
}

/// The account's balance. All amounts are in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PublicBalance {
    /// Can be spent on the marketplace: store balance plus trade balance.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("15.00")))]
    pub available_usd: Usd,
    /// The store balance: can be spent and withdrawn.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("10.00")))]
    pub store_usd: Usd,
    /// The trade balance: from sales and trades that are still in the external platform's trade protection or in P2P
    /// escrow. It can be spent, and is spent first. It can be withdrawn once it becomes store balance.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("5.00")))]
    pub trade_usd: Usd,
    /// The most that a withdrawal can take right now.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("10.00")))]
    pub withdrawable_usd: Usd,
    /// Set aside for your leading bids and open offers.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("2.50")))]
    pub held_usd: Usd,
    /// Payouts of P2P sales in escrow that the external platform has not confirmed yet.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}\\.[0-9]{2}$", examples("0.00")))]
    pub escrow_usd: Usd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_of_sources_are_pinned() {
        let all = [
            OrderSource::Checkout,
            OrderSource::Auction,
            OrderSource::Offer,
            OrderSource::BuyOrder,
            OrderSource::Trade,
        ];
        let names = all.map(|source| serde_json::to_value(source).unwrap());
        assert_eq!(names, ["checkout", "auction", "offer", "buy_order", "trade"]);
    }
}
