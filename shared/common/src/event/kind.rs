//! The events that an endpoint can select.

use crate::closed_enum;

closed_enum! {
    /// What happened to an account (specification 6.1.1). A closed list.
    pub enum EventKind {
        /// One of the account's listings went live.
        ListingCreated = "listing.created",
        /// One of the account's listings sold.
        ListingSold = "listing.sold",
        /// A listing was cancelled, by the owner or by the service.
        ListingCancelled = "listing.cancelled",
        /// An order was delivered.
        OrderCompleted = "order.completed",
        /// An order was refunded.
        OrderRefunded = "order.refunded",
        /// A bot or P2P trade finished.
        TradeCompleted = "trade.completed",
        /// A trade was reversed on the external trading platform.
        TradeReversed = "trade.reversed",
        /// A deposit was credited.
        WalletDeposit = "wallet.deposit",
        /// A withdrawal was sent or failed.
        WalletWithdrawal = "wallet.withdrawal",
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
