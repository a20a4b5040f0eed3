//! The caller's own records: key, orders, balance.

use serde::{Deserialize, Serialize};

use crate::closed_enum;
use crate::ids::{ItemId, KeyId, ListingId, OrderId, OrderStatus, UserId};
use crate::money::Usd;
use crate::scope::{Scopes, Tier};
use crate::timestamp::Timestamp;

/// The API key of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
