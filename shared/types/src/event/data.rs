//! The `data` of the events (specification, section 6), as the feed accepts it and deliveries carry it.
//!
//! It is sent as the marketplace gave it, byte for byte: amounts may have fewer than two decimals and times
//! any offset. No other field than those here is sent; an optional one is absent or null.

use serde::de::{Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use crate::ids::{DepositId, ItemId, Label, ListingId, OrderId, TradeId, VariantId, WithdrawalId};
use crate::money::Usd;
use crate::records::ListingKind;
use crate::timestamp::Timestamp;

/// The listing that went live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ListingCreated {
    /// The listing.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub listing_id: ListingId,
    /// The item.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub item_id: Option<ItemId>,
    /// The variant.
    #[cfg_attr(feature = "schema", schema(value_type = Option<uuid::Uuid>))]
    pub variant_id: Option<VariantId>,
    /// The name that external marketplaces use.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub market_hash_name: Option<Label>,
    /// Price in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$"))]
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    #[serde(deserialize_with = "name")]
    pub kind: ListingKind,
    /// Whether it is an auction.
    pub is_auction: bool,
}

/// The listing that sold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ListingSold {
    /// The listing.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub listing_id: ListingId,
    /// The buyer's order.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub order_id: OrderId,
    /// Price in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$"))]
    pub price_usd: Usd,
    /// `bot` (instant delivery) or `p2p` (escrow).
    #[serde(deserialize_with = "name")]
    pub kind: ListingKind,
}

/// The listing that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ListingCancelled {
    /// The listing.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub listing_id: ListingId,
    /// Who cancelled it.
    #[serde(deserialize_with = "name")]
    pub cancelled_by: CancelledBy,
}

/// Who cancelled a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CancelledBy {
    /// The account's owner.
    Owner,
    /// The service.
    Service,
}

/// The order that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OrderCompleted {
    /// The order.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub order_id: OrderId,
    /// Total in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$"))]
    pub total_usd: Usd,
    /// When it was delivered.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    #[serde(deserialize_with = "date_time")]
    pub delivered_at: Timestamp,
}

/// The order that was refunded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OrderRefunded {
    /// The order.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub order_id: OrderId,
    /// Total in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$"))]
    pub total_usd: Usd,
}

/// The trade that finished or was reversed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Trade {
    /// The trade.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub trade_id: TradeId,
    /// `bot` (instant delivery) or `p2p` (escrow).
    #[serde(deserialize_with = "name")]
    pub kind: ListingKind,
    /// The order that it belongs to.
    #[cfg_attr(feature = "schema", schema(value_type = Option<uuid::Uuid>))]
    pub order_id: Option<OrderId>,
    /// The listing that it belongs to.
    #[cfg_attr(feature = "schema", schema(value_type = Option<uuid::Uuid>))]
    pub listing_id: Option<ListingId>,
}

/// The deposit that was credited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WalletDeposit {
    /// The deposit.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub deposit_id: DepositId,
    /// Amount in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$"))]
    pub amount_usd: Usd,
}

/// The withdrawal that was sent or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WalletWithdrawal {
    /// The withdrawal.
    #[cfg_attr(feature = "schema", schema(value_type = uuid::Uuid))]
    pub withdrawal_id: WithdrawalId,
    /// Amount in US dollars.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]{1,12}(\\.[0-9]{1,2})?$"))]
    pub amount_usd: Usd,
    /// How it ended.
    #[serde(deserialize_with = "name")]
    pub status: WithdrawalStatus,
}

/// How a withdrawal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum WithdrawalStatus {
    /// The money is on its way.
    Sent,
    /// The money stays in the balance.
    Failed,
}

/// A name of a closed list; serde's derived enums would take an object of it, too.
fn name<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(deserializer)?.into_deserializer())
}

/// A time as JSON Schema's `date-time` has it: without the space that RFC 3339 lets applications put between
/// date and time.
fn date_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.contains(' ') {
        return Err(D::Error::custom("must have a `T` between date and time"));
    }
    text.parse().map_err(D::Error::custom)
}
