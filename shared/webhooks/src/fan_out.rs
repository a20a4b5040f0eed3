//! Fan-out: sends a delivery of an event for each endpoint that selected it (specification 6.6.1).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;

use super::Unsent;
use super::delivery::{Carried, Lane};
use super::endpoint::{Endpoints, WebhookEndpoint};
use super::queues::{QueueMessage, Queues};
use super::schedule::delivery_id;
use super::store::WebhookStore;
use common::event::{Event, EventKind};
use common::ids::{DeliveryId, UserId};
use common::store::StoreError;
use common::timestamp::Timestamp;

/// Fans events out. It writes nothing: each delivery travels in its own message, and whoever begins its first attempt
/// stores it. Repeating a fan-out changes nothing, because event and endpoint determine a delivery's id, and a message
/// that is sent twice calls for the same attempt.
pub struct FanOut {
    store: WebhookStore,
    queues: Queues,
    pace: Pace,
}

/// A delivery to be sent.
struct Outgoing {
    event: usize,
    message: QueueMessage,
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
        let mut outgoing = Vec::new();
        for (index, (_, event)) in events.iter().enumerate() {
            match self.deliveries(index, event, &accounts, now) {
                Ok(deliveries) => outgoing.extend(deliveries),
                Err(error) => outcomes[index] = Err(error),
            }
        }
        for one in &outgoing {
            if let Ok(is_sent) = &mut outcomes[one.event] {
                *is_sent = true;
            }
        }
        for (index, unsent) in self.send(&outgoing).await {
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
    ) -> Result<Vec<Outgoing>, StoreError> {
        let endpoints = accounts.get(&event.account_id).into_iter().flat_map(|account| &account.readable);
        let selecting = endpoints.filter(|endpoint| endpoint.events.contains(&event.kind));
        let outgoing = selecting.map(|endpoint| {
            let message = QueueMessage::First(Arc::new(carried(event, endpoint, now)?));
            Ok(Outgoing { event: index, message, lane: self.pace.lane(endpoint, now) })
        });
        outgoing.collect()
    }

    /// Sends messages. Returns those that may not have been sent, each as the index of its event and the reason.
    async fn send(&self, outgoing: &[Outgoing]) -> Vec<(usize, Unsent)> {
        let lanes = [Lane::First, Lane::Retry].map(|lane| async move {
            let some: Vec<_> = outgoing.iter().filter(|one| one.lane == lane).collect();
            let messages: Vec<_> = some.iter().map(|one| (one.message.clone(), 0)).collect();
            let sent = self.queues.send(lane, &messages).await;
            let unsent = some.iter().zip(sent).filter_map(|(one, sent)| Some((one.event, sent.err()?)));
            unsent.collect::<Vec<_>>()
        });
        join_all(lanes).await.concat()
    }
}

fn carried(event: &Event, endpoint: &WebhookEndpoint, now: Timestamp) -> Result<Carried, StoreError> {
    let id = delivery_id(event.id, endpoint.id);
    let body = body(id, event.kind, event.created_at, &event.data);
    Ok(Carried::new(id, (endpoint.account_id, endpoint.id), (event.id, event.kind), now, body)?)
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

/// Each instance that fans out sends at most this many first attempts per account and second to the first lane. The
/// rest go to the retry lane, and so does what waits for the drain of its account.
pub const FIRST_ATTEMPTS_PER_SECOND: u32 = 10;

/// Counts the deliveries that it lets into the first lane. Without a limit, a burst of one account would delay those of
/// others, and receivers that responded promptly until now could occupy every instance that serves this lane.
#[derive(Debug, Default)]
struct Pace(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    number: i64,
    admitted: HashMap<UserId, u32>,
}

impl Pace {
    /// Returns the lane for a delivery's first attempt, and counts it.
    fn lane(&self, endpoint: &WebhookEndpoint, now: Timestamp) -> Lane {
        if !endpoint.is_prompt {
            return Lane::Retry;
        }
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if second.number != now.seconds() {
            *second = Second { number: now.seconds(), admitted: HashMap::new() };
        }
        let admitted = second.admitted.entry(endpoint.account_id).or_default();
        *admitted += 1;
        if *admitted <= FIRST_ATTEMPTS_PER_SECOND { Lane::First } else { Lane::Retry }
    }
}

/// Returns the body of a delivery (specification 6.3). It is built once and sent byte for byte on every attempt.
///
/// `created_at` is the time of the event. `data` is one JSON object as the feed accepted it, and goes into the body
/// unchanged.
pub fn body(delivery: DeliveryId, kind: EventKind, created_at: Timestamp, data: &str) -> String {
    // Id, event name and time have no characters that JSON would escape.
    format!(r#"{{"id":"{delivery}","event":"{kind}","created_at":"{created_at}","data":{data}}}"#)
}

/// Returns the body of a test with sample data. It says so, in reach of both signatures: a receiver in production must
/// not book it.
pub fn test_body(delivery: DeliveryId, kind: EventKind, created_at: Timestamp) -> String {
    let data = kind.sample_data();
    format!(r#"{{"id":"{delivery}","event":"{kind}","created_at":"{created_at}","test":true,"data":{data}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Switch;
    use common::rotation::Secrets;
    use uuid::Uuid;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn endpoint(account: u128, number: u128) -> WebhookEndpoint {
        WebhookEndpoint {
            id: Uuid::from_u128(1_000 * account + number).into(),
            account_id: Uuid::from_u128(account).into(),
            url: "https://hooks.example.com/".to_owned(),
            events: [].into(),
            switch: Switch::On,
            disabled_at: None,
            epoch: 1,
            created_at: at(0),
            secrets: Secrets::first("sealed".to_owned(), at(0)),
            secret_version: 1,
            is_prompt: true,
            warning: None,
            host_changed_at: None,
        }
    }

    #[test]
    fn each_account_has_ten_first_attempts_a_second_whatever_waits_for_its_drain() {
        let pace = Pace::default();
        let admitted = |account, millis| {
            let unproven = WebhookEndpoint { is_prompt: false, ..endpoint(account, 12) };
            assert_eq!([(); 20].map(|()| pace.lane(&unproven, at(millis))), [Lane::Retry; 20]);
            let lanes = (0..20).map(|delivery| pace.lane(&endpoint(account, delivery % 10), at(millis)));
            lanes.filter(|lane| *lane == Lane::First).count()
        };
        assert_eq!([5_000, 5_999, 6_000].map(|millis| admitted(1, millis)), [10, 0, 10]);
        assert_eq!([2, 3, 4].map(|account| admitted(account, 6_000)), [10; 3]);
    }

    #[test]
    fn the_bytes_are_pinned() {
        let delivery = "11B8A653-fc28-5781-abb6-69448af70feb".parse().unwrap();
        let created_at = "2026-11-20T12:04:31.2509+02:00".parse().unwrap();
        let data = "{ \"amount_usd\" : \"5\",\n\t\"deposit_id\":\"5E9A3C21-7f64-4d18-9b0a-2c8d1e6f4a70\" }";
        let expected = concat!(
            r#"{"id":"11b8a653-fc28-5781-abb6-69448af70feb","event":"wallet.deposit","#,
            r#""created_at":"2026-11-20T10:04:31.250Z","data":{ "amount_usd" : "5","#,
            "\n\t\"deposit_id\":\"5E9A3C21-7f64-4d18-9b0a-2c8d1e6f4a70\" }}",
        );
        assert_eq!(body(delivery, EventKind::WalletDeposit, created_at, data), expected);
        let test = test_body(delivery, EventKind::WalletDeposit, created_at);
        assert!(test.contains(r#"10:04:31.250Z","test":true,"data":{""#), "{test}");
    }
}
