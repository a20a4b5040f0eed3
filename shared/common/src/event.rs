//! Events: what happens to an account, as the feed reports it and webhooks deliver it. For each kind there is its
//! `data` (specification 6.2) and a sample, which the API description shows and test events carry.
//!
//! Data is sent byte for byte as the marketplace wrote it, so an amount may have fewer than two decimals and a time
//! may have any offset. No fields other than these are accepted. An optional field may be absent or null.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use uuid::{Uuid, uuid};

use crate::closed_enum;
use crate::ids::{DepositId, EventId, ItemId, Label, ListingId, OrderId, TradeId, UserId, VariantId, WithdrawalId};
use crate::money::Usd;
use crate::records::ListingKind;
use crate::timestamp::Timestamp;

/// Something that happened to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Assigned by the marketplace, and the same each time that the message arrives.
    pub id: EventId,
    pub kind: EventKind,
    /// The account whose endpoints the event is delivered to.
    pub account_id: UserId,
    /// When the event happened.
    pub created_at: Timestamp,
    /// A JSON object that fits the kind's schema, byte for byte as received.
    pub data: Box<str>,
}

closed_enum! {
    /// What happened to an account (specification 6.1.1). A closed list.
    pub enum EventKind {
        /// One of the account's listings went live.
        ListingCreated = "listing.created",
        /// One of the account's listings sold.
        ListingSold = "listing.sold",
        /// A listing was cancelled, by the owner or by the service.
        ListingCancelled = "listing.cancelled",
        /// An order was delivered.
        OrderCompleted = "order.completed",
        /// An order was refunded.
        OrderRefunded = "order.refunded",
        /// A bot or P2P trade finished.
        TradeCompleted = "trade.completed",
        /// A trade was reversed on the external trading platform.
        TradeReversed = "trade.reversed",
        /// A deposit was credited.
        WalletDeposit = "wallet.deposit",
        /// A withdrawal was sent or failed.
        WalletWithdrawal = "wallet.withdrawal",
    }
}

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

const LISTING: Uuid = uuid!("0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21");
const VARIANT: Uuid = uuid!("302e3e41-4703-51e3-9cc2-e551bdcec11e");
const ORDER: Uuid = uuid!("7d2f4a90-58c1-4f0e-8a35-1c9be0a4d6f2");
const TRADE: Uuid = uuid!("c4b7e0de-9b1d-4a39-8a54-6f1c2f0d7e31");
const DEPOSIT: Uuid = uuid!("5e9a3c21-7f64-4d18-9b0a-2c8d1e6f4a70");
const WITHDRAWAL: Uuid = uuid!("d1f60b8a-3c95-4e27-a6b4-90e5c7d2f813");
/// 2026-11-20T10:04:31.250Z
const DELIVERED_MILLIS: i64 = 1_795_169_071_250;

impl EventKind {
    /// Returns sample data for an event of this kind. It is always the same.
    pub fn sample_data(self) -> Value {
        match self {
            Self::ListingCreated => json!(listing_created()),
            Self::ListingSold => json!(ListingSold {
                listing_id: LISTING.into(),
                order_id: ORDER.into(),
                price_usd: price(),
                kind: ListingKind::Bot,
            }),
            Self::ListingCancelled => {
                json!(ListingCancelled { listing_id: LISTING.into(), cancelled_by: CancelledBy::Owner })
            }
            Self::OrderCompleted => json!(OrderCompleted {
                order_id: ORDER.into(),
                total_usd: price(),
                delivered_at: Timestamp::from_millis(DELIVERED_MILLIS),
            }),
            Self::OrderRefunded => json!(OrderRefunded { order_id: ORDER.into(), total_usd: price() }),
            Self::TradeCompleted | Self::TradeReversed => json!(Trade {
                trade_id: TRADE.into(),
                kind: ListingKind::Bot,
                order_id: Some(ORDER.into()),
                listing_id: Some(LISTING.into()),
            }),
            Self::WalletDeposit => {
                json!(WalletDeposit { deposit_id: DEPOSIT.into(), amount_usd: Usd::from_cents(5_000) })
            }
            Self::WalletWithdrawal => json!(WalletWithdrawal {
                withdrawal_id: WITHDRAWAL.into(),
                amount_usd: Usd::from_cents(2_000),
                status: WithdrawalStatus::Sent,
            }),
        }
    }
}

fn price() -> Usd {
    Usd::from_cents(1_250)
}

fn listing_created() -> ListingCreated {
    ListingCreated {
        listing_id: LISTING.into(),
        item_id: "ak-47-redline".parse().ok(),
        variant_id: Some(VARIANT.into()),
        market_hash_name: "AK-47 | Redline (Field-Tested)".parse().ok(),
        price_usd: price(),
        kind: ListingKind::Bot,
        is_auction: false,
    }
}
