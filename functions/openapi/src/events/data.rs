//! The `data` of the events. No other field than those here is sent; an optional one is absent or null.

use serde::Serialize;
use shared::ids::{ItemId, Label};
use shared::model::ListingKind;
use shared::money::Usd;
use shared::timestamp::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

/// The listing that went live.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListingCreated {
    /// The listing.
    pub listing_id: Uuid,
    /// The item.
    #[schema(value_type = Option<String>)]
    pub item_id: Option<ItemId>,
    /// The variant.
    pub variant_id: Option<Uuid>,
    /// The name that external marketplaces use.
    #[schema(value_type = Option<String>)]
    pub market_hash_name: Option<Label>,
    /// Price in US dollars.
    #[schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$")]
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
    /// Whether it is an auction.
    pub is_auction: bool,
}

/// The listing that sold.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListingSold {
    /// The listing.
    pub listing_id: Uuid,
    /// The buyer's order.
    pub order_id: Uuid,
    /// Price in US dollars.
    #[schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$")]
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
}

/// The listing that was cancelled.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListingCancelled {
    /// The listing.
    pub listing_id: Uuid,
    /// Who cancelled it.
    pub cancelled_by: CancelledBy,
}

/// Who cancelled a listing.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CancelledBy {
    /// The account's owner.
    Owner,
    /// The service.
    Service,
}

/// The order that was delivered.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderCompleted {
    /// The order.
    pub order_id: Uuid,
    /// Total in US dollars.
    #[schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$")]
    pub total_usd: Usd,
    /// When it was delivered.
    #[schema(value_type = String, format = DateTime)]
    pub delivered_at: Timestamp,
}

/// The order that was refunded.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderRefunded {
    /// The order.
    pub order_id: Uuid,
    /// Total in US dollars.
    #[schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$")]
    pub total_usd: Usd,
}

/// The trade that finished or was reversed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Trade {
    /// The trade.
    pub trade_id: Uuid,
    /// `bot` (instant delivery) or `p2p` (escrow).
    pub kind: ListingKind,
    /// The order that it belongs to.
    pub order_id: Option<Uuid>,
    /// The listing that it belongs to.
    pub listing_id: Option<Uuid>,
}

/// The deposit that was credited.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WalletDeposit {
    /// The deposit.
    pub deposit_id: Uuid,
    /// Amount in US dollars.
    #[schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$")]
    pub amount_usd: Usd,
}

/// The withdrawal that was sent or failed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WalletWithdrawal {
    /// The withdrawal.
    pub withdrawal_id: Uuid,
    /// Amount in US dollars.
    #[schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$")]
    pub amount_usd: Usd,
    /// How it ended.
    pub status: WithdrawalStatus,
}

/// How a withdrawal ended.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WithdrawalStatus {
    /// The money is on its way.
    Sent,
    /// The money stays in the balance.
    Failed,
}
