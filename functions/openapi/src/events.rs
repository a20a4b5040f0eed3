//! The webhook events: what each one reports, and the schema of its data.

use std::borrow::Cow;

use types::event::EventKind;
use types::event::{
    ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade, WalletDeposit,
    WalletWithdrawal,
};
use utoipa::ToSchema;

/// An event that an endpoint can select (specification 6.1.1).
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// What it reports.
    pub(crate) meaning: &'static str,
    /// The name of the schema of its `data`.
    pub(crate) data: Cow<'static, str>,
}

/// Returns every event, in the order of specification 6.1.1.
pub(crate) fn all() -> [Event; 9] {
    EventKind::ALL.map(|kind| {
        let (meaning, data) = match kind {
            EventKind::ListingCreated => ("One of your listings went live", ListingCreated::name()),
            EventKind::ListingSold => ("One of your listings sold", ListingSold::name()),
            EventKind::ListingCancelled => {
                ("A listing was cancelled, by its owner or by the service", ListingCancelled::name())
            }
            EventKind::OrderCompleted => ("An order was delivered", OrderCompleted::name()),
            EventKind::OrderRefunded => ("An order was refunded", OrderRefunded::name()),
            EventKind::TradeCompleted => ("A bot or P2P trade finished", Trade::name()),
            EventKind::TradeReversed => ("A trade was reversed on the external trading platform", Trade::name()),
            EventKind::WalletDeposit => ("A deposit was credited", WalletDeposit::name()),
            EventKind::WalletWithdrawal => ("A withdrawal was sent or failed", WalletWithdrawal::name()),
        };
        Event { kind, meaning, data }
    })
}
