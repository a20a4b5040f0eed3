//! What is to be done about each message, before anything is.

use std::collections::HashMap;

use shared::ids::{EndpointId, UserId};
use shared::timestamp::Timestamp;
use shared::webhooks::delivery::{Dispatch, Lane};
use shared::webhooks::endpoint::Endpoint;

/// So many attempts to one endpoint an instance makes at a time in the lane of first attempts; the others of
/// a batch go to the other lane, so that one receiver that hangs does not fill all instances.
const IN_FLIGHT: usize = 4;

/// What is to be done about a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan<'e> {
    /// The endpoint is on: the attempt is made.
    Attempt(&'e Endpoint),
    /// The endpoint is slow, or busy with others of the batch: the message changes lanes.
    Forward,
    /// The endpoint is off: the delivery is held.
    Hold(&'e Endpoint),
    /// The endpoint is gone: the delivery ends.
    End,
}

/// A plan for each message, in order.
pub(crate) fn plans(
    lane: Lane,
    dispatches: impl IntoIterator<Item = Dispatch>,
    endpoints: &HashMap<UserId, Vec<Endpoint>>,
    now: Timestamp,
) -> Vec<Plan<'_>> {
    let mut in_flight = HashMap::<EndpointId, usize>::new();
    let plan = |dispatch: Dispatch| {
        let of_account = endpoints.get(&dispatch.account_id).into_iter().flatten();
        let Some(endpoint) = of_account.into_iter().find(|endpoint| endpoint.id == dispatch.endpoint_id) else {
            return Plan::End;
        };
        if !endpoint.is_on() {
            return Plan::Hold(endpoint);
        }
        let others = in_flight.entry(endpoint.id).or_default();
        if lane == Lane::First && (endpoint.is_slow(now) || *others >= IN_FLIGHT) {
            return Plan::Forward;
        }
        *others += 1;
        Plan::Attempt(endpoint)
    };
    dispatches.into_iter().map(plan).collect()
}
