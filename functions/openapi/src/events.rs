//! The webhook events: what each one reports, and the schema of its data.

use std::borrow::Cow;

use types::event::EventKind;
use types::event::{
    ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade, WalletDeposit,
    WalletWithdrawal,
};
use utoipa::ToSchema;

use crate::document::schema_set::{self, Schemas};

/// An event that an endpoint can select (specification 6.1.1).
pub(crate) struct DocumentedEvent {
    pub(crate) kind: EventKind,
    /// What it reports.
    pub(crate) meaning: &'static str,
    /// The name of the schema of its `data`.
    pub(crate) data: Cow<'static, str>,
    /// The schema of its `data`, and those of the types in it.
    pub(crate) schemas: Schemas,
}

impl DocumentedEvent {
    fn new<D: ToSchema>(kind: EventKind, meaning: &'static str) -> Self {
        Self { kind, meaning, data: D::name(), schemas: schema_set::of::<D>() }
    }
}

/// Returns every event, in the order of specification 6.1.1.
pub(crate) fn all() -> [DocumentedEvent; 9] {
    EventKind::ALL.map(|kind| match kind {
        EventKind::ListingCreated => DocumentedEvent::new::<ListingCreated>(kind, "One of your listings went live"),
        EventKind::ListingSold => DocumentedEvent::new::<ListingSold>(kind, "One of your listings sold"),
        EventKind::ListingCancelled => DocumentedEvent::new::<ListingCancelled>(
            kind,
            "One of your listings was cancelled, by you or by the service",
        ),
        EventKind::OrderCompleted => DocumentedEvent::new::<OrderCompleted>(kind, "One of your orders was delivered"),
        EventKind::OrderRefunded => DocumentedEvent::new::<OrderRefunded>(kind, "One of your orders was refunded"),
        EventKind::TradeCompleted => DocumentedEvent::new::<Trade>(kind, "One of your trades, by bot or P2P, finished"),
        EventKind::TradeReversed => {
            DocumentedEvent::new::<Trade>(kind, "One of your trades was reversed on the external trading platform")
        }
        EventKind::WalletDeposit => {
            DocumentedEvent::new::<WalletDeposit>(kind, "A deposit was credited to your balance")
        }
        EventKind::WalletWithdrawal => {
            DocumentedEvent::new::<WalletWithdrawal>(kind, "A withdrawal from your balance was sent, or failed")
        }
    })
}
