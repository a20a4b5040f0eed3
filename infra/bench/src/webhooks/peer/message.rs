//! The lines that the benchmark and an adapter exchange: one JSON document each.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use types::clock::{Clock, SystemClock};
use types::ids::UserId;
use uuid::Uuid;

use crate::webhooks::load::{account, event_data};

/// The benchmark's first line: the endpoints that the server is to deliver to.
#[derive(Debug, Serialize)]
pub(super) struct Setup<'a> {
    /// The base URL of the receiver.
    receiver: &'a str,
    endpoints: Vec<PeerEndpoint>,
}

#[derive(Debug, Serialize)]
struct PeerEndpoint {
    account: UserId,
    url: String,
}

impl<'a> Setup<'a> {
    /// Gives each of this many accounts an endpoint at the receiver.
    pub(super) fn new(receiver: &'a str, accounts: u64) -> Self {
        let endpoint = |number| PeerEndpoint { account: account(number), url: format!("{receiver}/{number}") };
        Self { receiver, endpoints: (0..accounts).map(endpoint).collect() }
    }
}

/// Each further line of the benchmark: events to deliver.
#[derive(Debug, Serialize)]
pub(super) struct Events {
    events: Vec<PeerEvent>,
}

#[derive(Debug, Serialize)]
struct PeerEvent {
    id: Uuid,
    account: UserId,
    event: &'static str,
    /// What to POST. It has the same members as a delivery of the functions.
    body: Value,
}

impl Events {
    /// Creates the events with these numbers, which go to the accounts in turn.
    pub(super) fn now(numbers: std::ops::Range<u64>, accounts: u64) -> Self {
        let (now, event) = (SystemClock::new().now(), "listing.sold");
        let events = numbers.map(|number| {
            let id = Uuid::new_v4();
            let body = json!({"id": id, "event": event, "created_at": now, "data": event_data()});
            PeerEvent { id, account: account(number % accounts), event, body }
        });
        Self { events: events.collect() }
    }
}

/// A line of an adapter.
pub(super) trait Answer: DeserializeOwned {
    /// What the line must look like.
    const EXAMPLE: &'static str;
}

/// The adapter's first line: the server runs and knows the endpoints.
#[derive(Debug, Deserialize)]
pub(super) struct Ready {
    pub(super) ready: bool,
    /// The processes whose CPU time counts, with all that they start.
    #[serde(default)]
    pub(super) pids: Vec<u32>,
}

impl Answer for Ready {
    const EXAMPLE: &'static str = r#"{"ready":true,"pids":[12,34]}"#;
}

/// Each further line of the adapter: the server has taken this many more events.
#[derive(Debug, Deserialize)]
pub(super) struct Accepted {
    pub(super) accepted: u64,
}

impl Answer for Accepted {
    const EXAMPLE: &'static str = r#"{"accepted":10}"#;
}
