//! The `data` of webhook events (specification 6.2), as the feed accepts it and deliveries carry it.
//!
//! Data is sent byte for byte as the marketplace wrote it, so an amount may have fewer than two decimals and a time
//! may have any offset. No fields other than these are accepted. An optional field may be absent or null.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::closed_enum;
use crate::ids::{DepositId, ItemId, Label, ListingId, OrderId, TradeId, VariantId, WithdrawalId};
use crate::money::Usd;
use crate::records::ListingKind;
use crate::timestamp::Timestamp;

/// The data of `listing.created`: the listing that went live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListingCreated {
    /// The listing's id.
    pub listing_id: ListingId,
    /// The id of the listing's item. May be null.
    pub item_id: Option<ItemId>,
    /// The id of the listing's variant. May be null.
    pub variant_id: Option<VariantId>,
    /// The name that external marketplaces use. May be null.
    pub market_hash_name: Option<Label>,
    /// The price in US dollars, with at most two decimals.
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
    /// Whether the listing is an auction.
    pub is_auction: bool,
}

/// The data of `listing.sold`: the listing that sold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListingSold {
    /// The listing's id.
    pub listing_id: ListingId,
    /// The id of the buyer's order.
    pub order_id: OrderId,
    /// The price in US dollars, with at most two decimals.
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
}

/// The data of `listing.cancelled`: the listing that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListingCancelled {
    /// The listing's id.
    pub listing_id: ListingId,
    /// Who cancelled the listing: `owner` or `service`.
    pub cancelled_by: CancelledBy,
}

closed_enum! {
    /// Who cancelled a listing.
    pub enum CancelledBy {
        /// The account's owner.
        Owner = "owner",
        /// The service.
        Service = "service",
    }
}

/// The data of `order.completed`: the order that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderCompleted {
    /// The order's id.
    pub order_id: OrderId,
    /// The order's total in US dollars, with at most two decimals.
    pub total_usd: Usd,
    /// When the order was delivered, with any UTC offset.
    #[serde(deserialize_with = "date_time")]
    pub delivered_at: Timestamp,
}

/// The data of `order.refunded`: the order that was refunded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRefunded {
    /// The order's id.
    pub order_id: OrderId,
    /// The order's total in US dollars, with at most two decimals.
    pub total_usd: Usd,
}

/// The data of `trade.completed` and `trade.reversed`: the trade that finished or was reversed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trade {
    /// The trade's id.
    pub trade_id: TradeId,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
    /// The id of the order that the trade belongs to. May be null.
    pub order_id: Option<OrderId>,
    /// The id of the listing that the trade belongs to. May be null.
    pub listing_id: Option<ListingId>,
}

/// The data of `wallet.deposit`: the deposit that was credited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalletDeposit {
    /// The deposit's id.
    pub deposit_id: DepositId,
    /// The amount in US dollars, with at most two decimals.
    pub amount_usd: Usd,
}

/// The data of `wallet.withdrawal`: the withdrawal that was sent or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalletWithdrawal {
    /// The withdrawal's id.
    pub withdrawal_id: WithdrawalId,
    /// The amount in US dollars, with at most two decimals.
    pub amount_usd: Usd,
    /// How the withdrawal ended: `sent` (the money is on its way) or `failed` (the money stays in the balance).
    pub status: WithdrawalStatus,
}

closed_enum! {
    /// How a withdrawal ended.
    pub enum WithdrawalStatus {
        /// The money is on its way.
        Sent = "sent",
        /// The money stays in the balance.
        Failed = "failed",
    }
}

/// Reads a time as JSON Schema's `date-time` allows it. RFC 3339 lets applications put a space between date and time;
/// `date-time` does not.
fn date_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.contains(' ') {
        return Err(D::Error::custom("must have a `T` between date and time"));
    }
    text.parse().map_err(D::Error::custom)
}
