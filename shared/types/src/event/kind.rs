//! The events that an endpoint can select.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scope::{UnknownName, one_of};

/// What happened to an account (specification, section 6). A closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum EventKind {
    /// One of the account's listings went live.
    ListingCreated,
    /// One of the account's listings sold.
    ListingSold,
    /// A listing was cancelled, by the owner or by the service.
    ListingCancelled,
    /// An order was delivered.
    OrderCompleted,
    /// An order was refunded.
    OrderRefunded,
    /// A bot or P2P trade finished.
    TradeCompleted,
    /// A trade was reversed on the external trading platform.
    TradeReversed,
    /// A deposit was credited.
    WalletDeposit,
    /// A withdrawal was sent or failed.
    WalletWithdrawal,
}

impl EventKind {
    /// Every kind, in the order of the specification.
    pub const ALL: [Self; 9] = [
        Self::ListingCreated,
        Self::ListingSold,
        Self::ListingCancelled,
        Self::OrderCompleted,
        Self::OrderRefunded,
        Self::TradeCompleted,
        Self::TradeReversed,
        Self::WalletDeposit,
        Self::WalletWithdrawal,
    ];

    /// Returns the name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ListingCreated => "listing.created",
            Self::ListingSold => "listing.sold",
            Self::ListingCancelled => "listing.cancelled",
            Self::OrderCompleted => "order.completed",
            Self::OrderRefunded => "order.refunded",
            Self::TradeCompleted => "trade.completed",
            Self::TradeReversed => "trade.reversed",
            Self::WalletDeposit => "wallet.deposit",
            Self::WalletWithdrawal => "wallet.withdrawal",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        one_of(&Self::ALL, Self::as_str, text)
    }
}

impl TryFrom<String> for EventKind {
    type Error = UnknownName;

    fn try_from(text: String) -> Result<Self, UnknownName> {
        text.parse()
    }
}

impl From<EventKind> for &'static str {
    fn from(kind: EventKind) -> Self {
        kind.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_pinned() {
        let names = [
            "listing.created",
            "listing.sold",
            "listing.cancelled",
            "order.completed",
            "order.refunded",
            "trade.completed",
            "trade.reversed",
            "wallet.deposit",
            "wallet.withdrawal",
        ];
        assert_eq!(EventKind::ALL.map(|kind| serde_json::to_value(kind).unwrap()), names);
        for kind in EventKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::from_value::<EventKind>(kind.as_str().into()).unwrap(), kind);
        }
        let unknown = "Listing.Sold".parse::<EventKind>().unwrap_err().to_string();
        assert_eq!(unknown, format!("must be one of {}", names.join(", ")));
    }
}
