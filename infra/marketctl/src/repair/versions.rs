//! Resets the version of an entity that was given a version by mistake which no later message reaches.

use accounts::Accounts;
use common::ids::{ItemId, ListingId, MarketplaceKey, OrderId, UserId};
use common::records::{PublicItem, PublicListing};
use common::store::StoreError;
use market::{Log, Market};
use serde::Serialize;
use thiserror::Error;

/// What has a version: an entity of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Versioned {
    Item(ItemId),
    Listing(ListingId),
    Marketplace(MarketplaceKey),
    Order(OrderId),
    /// The balance of a user.
    Balance(UserId),
}

/// There is no such kind of entity, or its ids do not look like this.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum NotVersioned {
    #[error("`{0}` is not one of item, listing, marketplace, order, balance")]
    Kind(String),
    #[error("`{id}` is no {kind} id: it {form}")]
    Id { kind: String, id: String, form: String },
}

impl Versioned {
    /// Parses the type of a message, and the id of what the message is about.
    pub(super) fn parse(kind: &str, id: &str) -> Result<Self, NotVersioned> {
        let parsed = match kind {
            "item" => id.parse().map(Self::Item),
            "listing" => id.parse().map(Self::Listing),
            "marketplace" => id.parse().map(Self::Marketplace),
            "order" => id.parse().map(Self::Order),
            "balance" => id.parse().map(Self::Balance),
            _ => return Err(NotVersioned::Kind(kind.to_owned())),
        };
        parsed.map_err(|error| NotVersioned::Id { kind: kind.to_owned(), id: id.to_owned(), form: error.to_string() })
    }

    /// Sets its version to 0, so that a message with any later version applies. Returns the version that it had, or
    /// `None` if it does not exist. Its data stays as it is.
    pub(super) async fn reset(&self, market: &Market, accounts: &Accounts) -> Result<Option<u64>, StoreError> {
        match self {
            Self::Item(id) => Log::<PublicItem>::new(market.clone()).reset_version(id).await,
            Self::Listing(id) => Log::<PublicListing>::new(market.clone()).reset_version(id).await,
            Self::Marketplace(key) => market.reset_marketplace_version(key).await,
            Self::Order(id) => accounts.reset_order_version(*id).await,
            Self::Balance(user) => accounts.reset_balance_version(*user).await,
        }
    }
}

/// A version that was set to 0.
#[derive(Debug, Serialize)]
pub(super) struct ResetReport {
    /// Kind and id.
    pub(super) entity: String,
    /// The version that it had.
    pub(super) version: u64,
}

impl ResetReport {
    pub(super) fn text(&self) -> String {
        let Self { entity, version } = self;
        format!("The version of {entity} was {version}, and is now 0. Send its newest message again.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_types_of_messages_and_ids_have_their_form() {
        let id = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
        assert_eq!(Versioned::parse("order", id), Ok(Versioned::Order(id.parse().unwrap())));
        assert_eq!(Versioned::parse("item", "a"), Ok(Versioned::Item("a".parse().unwrap())));
        assert_eq!(Versioned::parse("quote", id), Err(NotVersioned::Kind("quote".to_owned())));
        let malformed = Versioned::parse("listing", "7").unwrap_err();
        assert_eq!(malformed.to_string(), "`7` is no listing id: it must be a hyphenated UUID");
    }
}
