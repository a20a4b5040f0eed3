//! Fan-out: sends a delivery of an event for each endpoint that selected it (specification 6.6.1).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::join_all;

use super::delivery::{Carried, Lane};
use super::endpoint::{Endpoints, WebhookEndpoint};
use super::pace::Pace;
use super::queues::{Call, Queues};
use super::schedule::delivery_id;
use super::store::WebhookStore;
use super::{Unsent, body};
use platform::store::StoreError;
use types::event::Event;
use types::ids::UserId;
use types::timestamp::Timestamp;

/// Fans events out. It writes nothing: each delivery travels in its own message, and whoever begins its first attempt
/// stores it. Repeating a fan-out changes nothing, because event and endpoint determine a delivery's id, and a message
/// that is sent twice calls for the same attempt.
pub struct FanOut {
    store: WebhookStore,
    queues: Queues,
    pace: Pace,
}

/// A delivery to be sent.
struct Made {
    event: usize,
    call: Call,
    lane: Lane,
}

impl FanOut {
    pub fn new(store: WebhookStore, queues: Queues) -> Self {
        Self { store, queues, pace: Pace::default() }
    }

    /// Fans events out. Each event has a tag, which is returned with the event's outcome: whether it was sent to any
    /// endpoint. An event whose outcome is an error can be passed in again; the others are done.
    ///
    /// If an endpoint that may have selected an event cannot be read, the event's outcome is an error, although its
    /// deliveries to the other endpoints are sent. Events of other accounts are not affected.
    pub async fn apply<T: Copy>(&self, events: Vec<(T, Event)>, now: Timestamp) -> Vec<(T, Result<bool, StoreError>)> {
        let accounts: BTreeSet<UserId> = events.iter().map(|(_, event)| event.account_id).collect();
        if accounts.is_empty() {
            return Vec::new();
        }
        let accounts = match self.store.accounts(&accounts).await {
            Ok(accounts) => accounts,
            Err(error) => return events.into_iter().map(|(tag, _)| (tag, Err(error.clone()))).collect(),
        };
        let mut outcomes: Vec<Result<bool, StoreError>> =
            events.iter().map(|(_, event)| unsent_outcome(event, accounts.get(&event.account_id))).collect();
        let mut made = Vec::new();
        for (index, (_, event)) in events.iter().enumerate() {
            match self.deliveries(index, event, &accounts, now) {
                Ok(deliveries) => made.extend(deliveries),
                Err(error) => outcomes[index] = Err(error),
            }
        }
        for one in &made {
            if let Ok(is_sent) = &mut outcomes[one.event] {
                *is_sent = true;
            }
        }
        for (index, unsent) in self.send(&made).await {
            outcomes[index] = Err(StoreError::Unavailable(unsent.to_string()));
        }
        events.into_iter().map(|(tag, _)| tag).zip(outcomes).collect()
    }

    /// Returns a delivery for each endpoint of the event's account that selected it.
    fn deliveries(
        &self,
        index: usize,
        event: &Event,
        accounts: &HashMap<UserId, Endpoints>,
        now: Timestamp,
    ) -> Result<Vec<Made>, StoreError> {
        let endpoints = accounts.get(&event.account_id).into_iter().flat_map(|account| &account.readable);
        let selecting = endpoints.filter(|endpoint| endpoint.events.contains(&event.kind));
        let made = selecting.map(|endpoint| {
            let call = Call::carrying(Arc::new(carried(event, endpoint, now)?), 0);
            Ok(Made { event: index, call, lane: self.pace.lane(endpoint, now) })
        });
        made.collect()
    }

    /// Sends messages. Returns those that may not have been sent, each as the index of its event and the reason.
    async fn send(&self, made: &[Made]) -> Vec<(usize, Unsent)> {
        let lanes = [Lane::First, Lane::Retry].map(|lane| async move {
            let some: Vec<_> = made.iter().filter(|one| one.lane == lane).collect();
            let calls: Vec<Call> = some.iter().map(|one| one.call.clone()).collect();
            let sent = self.queues.call(lane, &calls).await;
            let unsent = some.iter().zip(sent).filter_map(|(one, sent)| Some((one.event, sent.err()?)));
            unsent.collect::<Vec<_>>()
        });
        join_all(lanes).await.concat()
    }
}

fn carried(event: &Event, endpoint: &WebhookEndpoint, now: Timestamp) -> Result<Carried, StoreError> {
    let id = delivery_id(event.id, endpoint.id);
    let body = body(id, event.kind, event.created_at, &event.data);
    Ok(Carried::new(id, (endpoint.account_id, endpoint.id), event.kind, now, body)?)
}

/// Returns the outcome of an event before any delivery is sent. It is an error if an endpoint that may
/// have selected the event cannot be read.
fn unsent_outcome(event: &Event, account: Option<&Endpoints>) -> Result<bool, StoreError> {
    let mut unreadable = account.into_iter().flat_map(|account| &account.unreadable);
    match unreadable.find(|endpoint| endpoint.may_select(event.kind)) {
        Some(endpoint) => Err(endpoint.unreadable.clone().into()),
        None => Ok(false),
    }
}
