//! Fan-out: makes a delivery of an event for each endpoint that selected it (specification 6.6.1).

use std::collections::{BTreeSet, HashMap};

use futures_util::StreamExt;
use futures_util::stream;

use super::delivery::{Delivery, Dispatch, Lane, Progress, Status, overdue_at};
use super::endpoint::{Endpoints, WebhookEndpoint};
use super::pace::Pace;
use super::queues::{Call, Queues};
use super::schedule::{Schedule, delivery_id};
use super::store::{Put, WebhookStore};
use super::{Unsent, body};
use platform::store::StoreError;
use types::event::Event;
use types::ids::UserId;
use types::timestamp::Timestamp;

/// How many deliveries are written at the same time.
const CONCURRENCY: usize = 32;

/// Fans events out. Repeating a fan-out changes nothing: event and endpoint determine a delivery's id, and a message
/// that is sent twice calls for the same attempt.
pub struct FanOut {
    store: WebhookStore,
    queues: Queues,
    schedule: Schedule,
    pace: Pace,
}

/// A delivery to be written.
struct Made {
    event: usize,
    delivery: Delivery,
    lane: Lane,
}

/// A delivery that was written and whose message must be sent.
struct Unsettled {
    event: usize,
    call: Call,
    lane: Lane,
}

impl FanOut {
    pub fn new(store: WebhookStore, queues: Queues, schedule: Schedule) -> Self {
        Self { store, queues, schedule, pace: Pace::default() }
    }

    /// Fans events out. Each event has a tag, which is returned with the event's outcome: whether any of its deliveries
    /// is new. An event whose outcome is an error can be passed in again; the others are done.
    ///
    /// If an endpoint that may have selected an event cannot be read, the event's outcome is an error, although its
    /// deliveries to the other endpoints are made. Events of other accounts are not affected.
    pub async fn apply<T: Copy>(&self, events: Vec<(T, Event)>, now: Timestamp) -> Vec<(T, Result<bool, StoreError>)> {
        let accounts: BTreeSet<UserId> = events.iter().map(|(_, event)| event.account_id).collect();
        if accounts.is_empty() {
            return Vec::new();
        }
        let endpoints = match self.store.endpoints_of(&accounts).await {
            Ok(endpoints) => endpoints,
            Err(error) => return events.into_iter().map(|(tag, _)| (tag, Err(error.clone()))).collect(),
        };
        let mut outcomes: Vec<Result<bool, StoreError>> =
            events.iter().map(|(_, event)| undelivered(event, endpoints.get(&event.account_id))).collect();
        let mut unsettled = Vec::new();
        let puts = stream::iter(self.deliveries(&events, &endpoints, now))
            .map(|made| async move { (made.event, self.put(made).await) })
            .buffer_unordered(CONCURRENCY)
            .collect::<Vec<_>>();
        for (index, put) in puts.await {
            match put {
                Ok((is_new, to_send)) => {
                    unsettled.extend(to_send);
                    if is_new && outcomes[index].is_ok() {
                        outcomes[index] = Ok(true);
                    }
                }
                Err(error) => outcomes[index] = Err(error),
            }
        }
        for (index, unsent) in self.send(&unsettled).await {
            outcomes[index] = Err(StoreError::Unavailable(unsent.to_string()));
        }
        events.into_iter().map(|(tag, _)| tag).zip(outcomes).collect()
    }

    /// Writes a delivery. Returns whether it is new, and its message if that must be sent. If the delivery exists
    /// already, the message must be sent again until somebody claims the first attempt: an earlier run may have
    /// crashed after its write, before it sent the message.
    async fn put(&self, made: Made) -> Result<(bool, Option<Unsettled>), StoreError> {
        let Made { event, delivery, lane } = made;
        let (is_new, progress) = match self.store.put_delivery(&delivery).await? {
            Put::New => (true, delivery.progress.clone()),
            Put::Present(found) => (false, found.progress),
        };
        let is_first = progress.status == Status::Pending && progress.token == delivery.progress.token;
        let call = Call { dispatch: Dispatch::next_of(&delivery), delay_seconds: 0 };
        Ok((is_new, (is_first && progress.claims == 0).then_some(Unsettled { event, call, lane })))
    }

    /// Returns a delivery for each event and each endpoint of its account that selected it.
    fn deliveries<T>(
        &self,
        events: &[(T, Event)],
        endpoints: &HashMap<UserId, Endpoints>,
        now: Timestamp,
    ) -> Vec<Made> {
        let mut made = Vec::new();
        for (index, (_, event)) in events.iter().enumerate() {
            let of_account = endpoints.get(&event.account_id).into_iter().flat_map(|found| &found.readable);
            made.extend(of_account.filter(|endpoint| endpoint.events.contains(&event.kind)).map(|endpoint| Made {
                event: index,
                delivery: self.delivery(event, endpoint, now),
                lane: self.pace.lane(endpoint, now),
            }));
        }
        made
    }

    fn delivery(&self, event: &Event, endpoint: &WebhookEndpoint, now: Timestamp) -> Delivery {
        let id = delivery_id(event.id, endpoint.id);
        let status = if endpoint.is_on() { Status::Pending } else { Status::Held };
        Delivery {
            id,
            endpoint_id: endpoint.id,
            account_id: endpoint.account_id,
            event: event.kind,
            is_test: false,
            created_at: now,
            body: body(id, event.kind, event.created_at, &event.data),
            progress: Progress::new(id, status, now, overdue_at(self.schedule, now, 0)),
        }
    }

    /// Sends messages. Returns those that may not have been sent, each as the index of its event and the reason.
    async fn send(&self, unsettled: &[Unsettled]) -> Vec<(usize, Unsent)> {
        let mut unsent = Vec::new();
        for lane in Lane::ALL {
            let some: Vec<_> = unsettled.iter().filter(|one| one.lane == lane).collect();
            let calls: Vec<Call> = some.iter().map(|one| one.call).collect();
            let sent = self.queues.call(lane, &calls).await;
            unsent.extend(some.iter().zip(sent).filter_map(|(one, sent)| Some((one.event, sent.err()?))));
        }
        unsent
    }
}

/// Returns the outcome of an event before any delivery is made: none is new. It is an error if an endpoint that may
/// have selected the event cannot be read.
fn undelivered(event: &Event, endpoints: Option<&Endpoints>) -> Result<bool, StoreError> {
    let mut unreadable = endpoints.into_iter().flat_map(|found| &found.unreadable);
    match unreadable.find(|endpoint| endpoint.may_select(event.kind)) {
        Some(endpoint) => Err(endpoint.unreadable.clone().into()),
        None => Ok(false),
    }
}
