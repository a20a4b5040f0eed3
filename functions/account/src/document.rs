//! The lists that an owner is shown. What is shown of one key, endpoint or delivery stands in `admin`.

use std::str::FromStr;

use admin::webhooks::document::{DeliveryRow, EndpointDocument, SentDeliveries};
use api::auth::KeyRecord;
use common::ids::{DeliveryId, EndpointId, KeyId};
use common::rows::Unreadable;
use serde::Serialize;

/// A user's keys, and the ids of those that cannot be read.
#[derive(Serialize)]
pub(crate) struct KeyList {
    pub(crate) keys: Vec<KeyRecord>,
    pub(crate) unreadable: Vec<KeyId>,
}

#[derive(Serialize)]
pub(crate) struct EndpointList<'a> {
    pub(crate) endpoints: Vec<EndpointDocument<'a>>,
    pub(crate) unreadable: Vec<EndpointId>,
}

#[derive(Serialize)]
pub(crate) struct DeliveryList {
    pub(crate) deliveries: Vec<DeliveryRow>,
    pub(crate) unreadable: Vec<DeliveryId>,
    /// Where the next page begins, or `null` if this is the last one.
    pub(crate) cursor: Option<String>,
}

/// What became of deliveries that are to be sent again.
#[derive(Serialize)]
pub(crate) struct SentList {
    #[serde(flatten)]
    pub(crate) sent: SentDeliveries,
    pub(crate) unreadable: Vec<DeliveryId>,
}

/// Returns the ids of rows that cannot be read. The last id in a row's key is its own.
pub(crate) fn ids<T: FromStr>(unreadable: &[Unreadable]) -> Vec<T> {
    let id = |row: &Unreadable| row.row.rsplit([' ', '#']).find_map(|part| part.parse().ok());
    unreadable.iter().filter_map(id).collect()
}
