//! The message about an event. Its data is checked against the schema of its kind, and kept byte for byte as received.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::rejection::{Rejection, read};
use common::event::{
    Event, EventKind, ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade,
    WalletDeposit, WalletWithdrawal,
};
use common::ids::{EventId, UserId};
use common::timestamp::Timestamp;

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
    pub(super) fn event(self) -> Result<Event, Rejection> {
        let Self { id, event: kind, account_id, created_at, data, .. } = self;
        check(kind, data.get())?;
        Ok(Event { id, kind, account_id, created_at, data: data.into() })
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
    fits.map_err(|Rejection { field, reason, .. }| {
        let field = if field.is_empty() { "data".to_owned() } else { format!("data.{field}") };
        Rejection::new(&field, reason)
    })
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
