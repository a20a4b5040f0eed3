//! The webhook events: what each reports, and the data it carries.
//!
//! The data is sent as the marketplace gave it, byte for byte: amounts may have fewer than two decimals and
//! times any offset. The schemas here say so.

mod data;

use serde::Serialize;
use serde_json::Value;
use shared::model::ListingKind;
use shared::money::Usd;
use shared::timestamp::Timestamp;
use utoipa::ToSchema;
use uuid::{Uuid, uuid};

pub use data::{
    CancelledBy, ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade, WalletDeposit,
    WalletWithdrawal, WithdrawalStatus,
};

/// One of the events that an endpoint can select (specification, section 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it reports.
    pub meaning: &'static str,
    /// The name of the schema of its `data`.
    pub data: String,
    /// An example of its `data`.
    pub example: Value,
}

const LISTING: Uuid = uuid!("0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21");
const VARIANT: Uuid = uuid!("4f2c1f4e-6a57-5c0e-9d3a-0f6f0a3c7a11");
const ORDER: Uuid = uuid!("7d2f4a90-58c1-4f0e-8a35-1c9be0a4d6f2");
const TRADE: Uuid = uuid!("c4b7e0de-9b1d-4a39-8a54-6f1c2f0d7e31");
const DEPOSIT: Uuid = uuid!("5e9a3c21-7f64-4d18-9b0a-2c8d1e6f4a70");
const WITHDRAWAL: Uuid = uuid!("d1f60b8a-3c95-4e27-a6b4-90e5c7d2f813");
/// 2026-11-20T10:04:31.250Z
const DELIVERED: i64 = 1_795_169_071_250;

/// Every event, in the order of the specification.
pub fn all() -> [Event; 9] {
    let price_usd = Usd::from_cents(1_250);
    let kind = ListingKind::Bot;
    let created = ListingCreated {
        listing_id: LISTING,
        item_id: "ak-47-redline".parse().ok(),
        variant_id: Some(VARIANT),
        market_hash_name: "AK-47 | Redline (Field-Tested)".parse().ok(),
        price_usd,
        kind,
        is_auction: false,
    };
    let sold = ListingSold { listing_id: LISTING, order_id: ORDER, price_usd, kind };
    let cancelled = ListingCancelled { listing_id: LISTING, cancelled_by: CancelledBy::Owner };
    let delivered_at = Timestamp::from_millis(DELIVERED);
    let completed = OrderCompleted { order_id: ORDER, total_usd: price_usd, delivered_at };
    let refunded = OrderRefunded { order_id: ORDER, total_usd: price_usd };
    let trade = Trade { trade_id: TRADE, kind, order_id: Some(ORDER), listing_id: Some(LISTING) };
    let deposit = WalletDeposit { deposit_id: DEPOSIT, amount_usd: Usd::from_cents(5_000) };
    let withdrawal = WalletWithdrawal {
        withdrawal_id: WITHDRAWAL,
        amount_usd: Usd::from_cents(2_000),
        status: WithdrawalStatus::Sent,
    };
    [
        event("listing.created", "One of the account's listings went live", &created),
        event("listing.sold", "One of the account's listings sold", &sold),
        event("listing.cancelled", "A listing was cancelled, by the owner or by the service", &cancelled),
        event("order.completed", "An order was delivered", &completed),
        event("order.refunded", "An order was refunded", &refunded),
        event("trade.completed", "A bot or P2P trade finished", &trade),
        event("trade.reversed", "A trade was reversed on the external trading platform", &trade),
        event("wallet.deposit", "A deposit was credited", &deposit),
        event("wallet.withdrawal", "A withdrawal was sent or failed", &withdrawal),
    ]
}

fn event<T: Serialize + ToSchema>(name: &'static str, meaning: &'static str, data: &T) -> Event {
    let example = serde_json::to_value(data).unwrap_or_default();
    Event { name, meaning, data: T::name().into_owned(), example }
}
