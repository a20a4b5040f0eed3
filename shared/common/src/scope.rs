//! What a key may do, and how often.

use std::collections::BTreeSet;

use crate::closed_enum;

// To this release these lists are closed: an unknown scope grants nothing (specification 5.3.1). To clients they are open
// (1.2.10).
closed_enum! {
    /// A right that a key carries.
    pub enum Scope {
        /// Items, prices and marketplaces.
        CatalogRead = "catalog:read",
        /// Active listings.
        ListingsRead = "listings:read",
        /// The caller's own orders.
        OrdersRead = "orders:read",
        /// The caller's own balance.
        WalletRead = "wallet:read",
    }
}

closed_enum! {
    /// A plan: how many requests a key may make per minute and scope.
    pub enum Tier {
        Free = "free",
        /// Coming soon.
        Pro = "pro",
        /// Coming soon.
        Business = "business",
    }
}

/// The scopes of a key, in the order of specification 5.3.1.
pub type Scopes = BTreeSet<Scope>;

impl Tier {
    /// Requests per minute and scope (specification 8.1.1). A key follows its tier unless it has a limit of its own, so a
    /// change here reaches existing keys with the next deployment.
    pub const fn limit(self) -> u32 {
        match self {
            Self::Free => 60,
            Self::Pro => 600,
            Self::Business => 3_000,
        }
    }

    /// Returns whether the tier is announced but not yet on offer.
    pub const fn is_coming_soon(self) -> bool {
        match self {
            Self::Free => false,
            Self::Pro | Self::Business => true,
        }
    }
}

/// What a request is counted against: a scope's bucket, or `/me`'s own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Budget {
    /// The bucket of a scope, which the key must hold.
    Scope(Scope),
    /// The bucket of `/v1/public/me`, which every valid key has.
    Me,
}

impl Budget {
    /// The name in a 429's `params.scope`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scope(scope) => scope.as_str(),
            Self::Me => "me",
        }
    }

    /// The scope that the key must hold, if any.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Scope(scope) => Some(scope),
            Self::Me => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_specification() {
        assert_eq!(Tier::ALL.map(Tier::limit), [60, 600, 3_000]);
    }
}
