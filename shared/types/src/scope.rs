//! What a key may do, and how often.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A right that a key carries (specification, section 5). A closed list: an unknown name grants nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(description = "A right that a key carries."))]
pub enum Scope {
    /// Items, prices and marketplaces.
    #[serde(rename = "catalog:read")]
    CatalogRead,
    /// Active listings.
    #[serde(rename = "listings:read")]
    ListingsRead,
    /// The caller's own orders.
    #[serde(rename = "orders:read")]
    OrdersRead,
    /// The caller's own balance.
    #[serde(rename = "wallet:read")]
    WalletRead,
}

/// The scopes of a key, in the order of the specification's section 5.
pub type Scopes = BTreeSet<Scope>;

/// A name that is not in a closed list. The error shows the list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be one of {0}")]
pub struct UnknownName(String);

impl Scope {
    /// Every scope, in the order of the specification's section 5.
    pub const ALL: [Self; 4] = [Self::CatalogRead, Self::ListingsRead, Self::OrdersRead, Self::WalletRead];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CatalogRead => "catalog:read",
            Self::ListingsRead => "listings:read",
            Self::OrdersRead => "orders:read",
            Self::WalletRead => "wallet:read",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        one_of(&Self::ALL, Self::as_str, text)
    }
}

/// A plan: how many requests a key may make per minute and scope (specification, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schema(description = "A plan: how many requests a key may make per minute and scope."))]
pub enum Tier {
    /// 60 requests per minute and scope.
    Free,
    /// 600 requests per minute and scope; coming soon.
    Pro,
    /// 3,000 requests per minute and scope; coming soon.
    Business,
}

impl Tier {
    /// Every tier, smallest first.
    pub const ALL: [Self; 3] = [Self::Free, Self::Pro, Self::Business];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Business => "business",
        }
    }

    /// Requests per minute and scope.
    pub const fn limit(self) -> u32 {
        match self {
            Self::Free => 60,
            Self::Pro => 600,
            Self::Business => 3_000,
        }
    }

    /// Whether the tier is announced but not yet on offer.
    pub const fn is_coming_soon(self) -> bool {
        matches!(self, Self::Pro | Self::Business)
    }
}

impl FromStr for Tier {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        one_of(&Self::ALL, Self::as_str, text)
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

/// Finds the member of a closed list that has this name.
pub fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, UnknownName> {
    let known = all.iter().copied().find(|one| name(*one) == text);
    known.ok_or_else(|| UnknownName(all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_pinned() {
        let names: Vec<_> = Scope::ALL.iter().map(|s| serde_json::to_value(s).unwrap()).collect();
        assert_eq!(names, ["catalog:read", "listings:read", "orders:read", "wallet:read"]);
        let tiers: Vec<_> = Tier::ALL.iter().map(|t| serde_json::to_value(t).unwrap()).collect();
        assert_eq!(tiers, ["free", "pro", "business"]);
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
        }
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse(), Ok(tier));
        }
        assert!("catalog:write".parse::<Scope>().is_err());
        assert!("CATALOG:READ".parse::<Scope>().is_err());
    }

    #[test]
    fn limits_are_those_of_the_specification() {
        assert_eq!(Tier::ALL.map(Tier::limit), [60, 600, 3_000]);
    }
}
