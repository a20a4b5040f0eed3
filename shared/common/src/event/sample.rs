//! Sample data of each event. The API description shows it, and test events carry it.

use serde_json::{Value, json};
use uuid::{Uuid, uuid};

use super::EventKind;
use super::{
    CancelledBy, ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade, WalletDeposit,
    WalletWithdrawal, WithdrawalStatus,
};
use crate::money::Usd;
use crate::records::ListingKind;
use crate::timestamp::Timestamp;

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
