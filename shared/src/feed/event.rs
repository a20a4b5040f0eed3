//! The message about an event. Its data is checked against the schema of its kind and kept as received.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{Message, Rejection, read};
use crate::ids::{EventId, UserId};
use crate::model::event::{
    ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade, WalletDeposit,
    WalletWithdrawal,
};
use crate::timestamp::Timestamp;
use crate::webhooks::EventKind;

/// Something that happened to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Of the marketplace's making; the same however often the message arrives.
    pub id: EventId,
    /// What happened.
    pub kind: EventKind,
    /// Whose endpoints it is delivered to.
    pub account_id: UserId,
    /// When it happened.
    pub created_at: Timestamp,
    /// A JSON object that fits the kind's schema, byte for byte as received.
    pub data: Box<str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventMessage {
    #[serde(rename = "type")]
    _type: String,
    id: EventId,
    event: EventKind,
    account_id: UserId,
    created_at: Timestamp,
    data: Box<RawValue>,
}

impl EventMessage {
    pub(super) fn message(self) -> Result<Message, Rejection> {
        let Self { id, event: kind, account_id, created_at, data, .. } = self;
        check(kind, data.get())?;
        Ok(Message::Event(Event { id, kind, account_id, created_at, data: data.into() }))
    }
}

fn check(kind: EventKind, data: &str) -> Result<(), Rejection> {
    let fits = match kind {
        EventKind::ListingCreated => read::<ListingCreated>(data).map(drop),
        EventKind::ListingSold => read::<ListingSold>(data).map(drop),
        EventKind::ListingCancelled => read::<ListingCancelled>(data).map(drop),
        EventKind::OrderCompleted => read::<OrderCompleted>(data).map(drop),
        EventKind::OrderRefunded => read::<OrderRefunded>(data).map(drop),
        EventKind::TradeCompleted | EventKind::TradeReversed => read::<Trade>(data).map(drop),
        EventKind::WalletDeposit => read::<WalletDeposit>(data).map(drop),
        EventKind::WalletWithdrawal => read::<WalletWithdrawal>(data).map(drop),
    };
    fits.map_err(|Rejection { field, reason }| {
        let field = if field.is_empty() { "data".to_owned() } else { format!("data.{field}") };
        Rejection { field, reason }
    })
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
