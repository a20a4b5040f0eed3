//! What is to be done about a message, before anything is.

use std::collections::HashMap;

use shared::ids::{EndpointId, UserId};
use shared::timestamp::Timestamp;
use shared::webhooks::delivery::{Dispatch, Lane};
use shared::webhooks::endpoint::Endpoint;
use tokio::sync::Semaphore;

/// So many attempts to one endpoint are made at a time of a batch. The others wait for one of them, which for
/// a receiver that answers takes no time, and for one that hangs ends when it is found to be slow.
const IN_FLIGHT: usize = 4;

/// What is to be done about a message.
pub(crate) enum Plan<'b> {
    /// The endpoint is on: the attempt is made once there is room for it.
    Attempt(&'b Endpoint, &'b Semaphore),
    /// The endpoint is slow: the message leaves the lane of first attempts.
    Forward,
    /// The endpoint is off: the delivery is held.
    Hold(&'b Endpoint),
    /// The endpoint is gone: the delivery ends.
    End,
}

/// The endpoints of a batch, and the room for attempts to each.
pub(crate) struct Endpoints(HashMap<EndpointId, (Endpoint, Semaphore)>);

impl Endpoints {
    pub(crate) fn of(accounts: HashMap<UserId, Vec<Endpoint>>) -> Self {
        let endpoints = accounts.into_values().flatten();
        Self(endpoints.map(|endpoint| (endpoint.id, (endpoint, Semaphore::new(IN_FLIGHT)))).collect())
    }

    pub(crate) fn plan(&self, lane: Lane, dispatch: &Dispatch, now: Timestamp) -> Plan<'_> {
        let Some((endpoint, room)) = self.0.get(&dispatch.endpoint_id) else { return Plan::End };
        if !endpoint.is_on() {
            return Plan::Hold(endpoint);
        }
        if lane == Lane::First && endpoint.is_slow(now) {
            return Plan::Forward;
        }
        Plan::Attempt(endpoint, room)
    }
}
