//! Events: what happens to an account, as the feed reports it and webhooks deliver it.

mod data;
mod kind;
mod sample;

pub use data::{
    CancelledBy, ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade, WalletDeposit,
    WalletWithdrawal, WithdrawalStatus,
};
pub use kind::EventKind;

use crate::ids::{EventId, UserId};
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
