//! Takes and leaves the places of an account's share, which are attributes of its row.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::WebhookStore;
use super::account_change::AccountChange;
use super::table::{ENDPOINT_ID, HOLDER, PROMPT, RESERVED_UNTIL, UNTIL, place_attribute};
use crate::share::{PLACES, Place, Share};
use platform::store::{Attributes, Row, StoreError, n, s};
use types::ids::{EndpointId, UserId};
use types::timestamp::Timestamp;

/// Reads the share in an account's row. A place that cannot be read looks free, and cannot be taken.
pub(super) fn share(row: &Row) -> Share {
    let place = |number| place(row.get(&place_attribute(number))?);
    let reserved_until = Attributes(row).number(RESERVED_UNTIL).map(Timestamp::from_millis);
    Share { places: std::array::from_fn(place), reserved_until }
}

fn place(value: &AttributeValue) -> Option<Place> {
    let read = Attributes(value.as_m().ok()?);
    let until = read.number(UNTIL).map(Timestamp::from_millis)?;
    Some(Place { endpoint_id: read.parsed(ENDPOINT_ID).ok()?, holder: read.parsed(HOLDER).ok()?, until })
}

impl WebhookStore {
    /// Takes the place with this number for an attempt to `place.endpoint_id`. Returns whether it was free, or the
    /// holder's own already, and the endpoint had no other.
    pub async fn take_place(
        &self,
        account: UserId,
        number: usize,
        place: Place,
        is_retry: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let value = HashMap::from(
            [
                (ENDPOINT_ID, s(place.endpoint_id.to_string())),
                (HOLDER, s(place.holder.to_string())),
                (UNTIL, n(place.until.millis())),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let mut change = AccountChange::for_endpoint(place.endpoint_id)
            .update(format!("SET #p{number} = :place"))
            .named("#until", UNTIL)
            .named("#endpoint", ENDPOINT_ID)
            .named("#holder", HOLDER)
            .valued(":place", AttributeValue::M(value))
            .valued(":endpoint", s(place.endpoint_id.to_string()))
            .valued(":holder", s(place.holder.to_string()))
            .valued(":now", n(now.millis()));
        for other in 0..PLACES {
            let is_free = format!("attribute_not_exists(#p{other}) OR #p{other}.#until < :now");
            let or = if other == number { "#holder = :holder" } else { "#endpoint <> :endpoint" };
            let is_free = format!("{is_free} OR #p{other}.{or}");
            change = change.named(&format!("#p{other}"), place_attribute(other)).when(is_free);
        }
        if !is_retry {
            change = change.named("#reserved", RESERVED_UNTIL);
            change = change.when("attribute_not_exists(#reserved) OR #reserved < :now");
        }
        self.change_account(account, change).await
    }

    /// Leaves a place. Nothing happens if somebody else has it meanwhile.
    pub async fn leave_place(&self, account: UserId, number: usize, place: Place) -> Result<(), StoreError> {
        let change = left(number, place).update("REMOVE #place");
        self.change_account(account, change).await.map(drop)
    }

    /// Leaves a place, and notes that the endpoint responds promptly. From then on its attempts need no place.
    pub async fn leave_place_promptly(&self, account: UserId, number: usize, place: Place) -> Result<(), StoreError> {
        let change = left(number, place).update("SET #e.#prompt = :true REMOVE #place");
        let change = change.named("#prompt", PROMPT).valued(":true", AttributeValue::Bool(true));
        self.change_account(account, change).await.map(drop)
    }

    /// Keeps the places of an account for retries. A longer reservation is not shortened.
    pub async fn reserve_places(
        &self,
        account: UserId,
        endpoint: EndpointId,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let change = AccountChange::for_endpoint(endpoint)
            .update("SET #reserved = :until")
            .when("attribute_not_exists(#reserved) OR #reserved < :until")
            .named("#reserved", RESERVED_UNTIL)
            .valued(":until", n(until.millis()));
        self.change_account(account, change).await.map(drop)
    }
}

fn left(number: usize, place: Place) -> AccountChange {
    AccountChange::for_endpoint(place.endpoint_id)
        .when("#place.#holder = :holder")
        .named("#place", place_attribute(number))
        .named("#holder", HOLDER)
        .valued(":holder", s(place.holder.to_string()))
}
