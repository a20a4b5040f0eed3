//! The sender of webhooks: makes the attempts that the two delivery queues call for.
//!
//! A message is acknowledged once what it calls for is on record, once it is void, or once a copy of it lies
//! in the retry queue. A crash at any step makes the message come again; the delivery's lease, token and
//! count decide what it still means.

mod attempt;
mod attend;
mod batch;
mod fate;
mod headers;
mod settle;
pub mod transport;

use std::sync::{Arc, Mutex, PoisonError};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use platform::aws::{Missing, Patience};
use platform::metrics::Meter;
use platform::preflight;
use platform::resources::Queue;
use platform::service::Service;
use runtime::{Error, Worker};
use secrets::KeyringCache;
use types::clock::Clock;
use webhooks::store::WebhookStore;
use webhooks::{Notices, Queues, Schedule};

use fate::Fate;
use transport::{Reach, Transport};

/// The function; clones share connections and what was read of the keyring.
#[derive(Clone)]
pub struct Webhook {
    store: WebhookStore,
    queues: Queues,
    notices: Notices,
    keyring: KeyringCache,
    transport: Transport,
    schedule: Schedule,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
    /// For how long each event has waited whose first attempt was begun since the last line, in milliseconds.
    waits: Arc<Mutex<Vec<u64>>>,
    /// The name of the queue of first attempts, as it ends its ARN.
    first_queue: String,
}

/// The function as its environment describes it; where it may connect, and how long retries wait, its
/// caller decides.
pub fn worker(service: &Service<'_>, transport: Transport, schedule: Schedule) -> Result<Webhook, Missing> {
    let store = WebhookStore::from_service(service, Patience::Request, preflight::batch_get)?;
    let queues = [Queue::WebhooksFirst, Queue::WebhooksRetry, Queue::Notices];
    let (sqs, [first, retry, notices]) = queues::from_service(service, queues)?;
    let first_queue = queues::name(&first).to_owned();
    Ok(Webhook {
        notices: Notices::new(store.clone(), sqs.clone(), notices),
        queues: Queues::new(sqs, first, retry),
        keyring: KeyringCache::from_service(service)?,
        store,
        transport,
        schedule,
        clock: Arc::clone(&service.clock),
        meter: Arc::clone(&service.meter),
        waits: Arc::default(),
        first_queue,
    })
}

/// The function as it is deployed: it reaches the public internet alone, on the specification's schedule.
pub fn deployed(service: &Service<'_>) -> Result<Webhook, Error> {
    Ok(worker(service, Transport::new(Reach::public())?, Schedule::default())?)
}

impl Worker for Webhook {
    type Event = SqsEvent;
    type Response = SqsBatchResponse;

    async fn work(&self, event: SqsEvent) -> Result<SqsBatchResponse, Error> {
        let fates = self.handle(&event.records).await;
        let waits = std::mem::take(&mut *self.waits.lock().unwrap_or_else(PoisonError::into_inner));
        fate::log(&self.meter, &event.records, &fates, &waits);
        let mut response = SqsBatchResponse::default();
        for (record, _) in event.records.iter().zip(&fates).filter(|(_, fate)| matches!(fate, Fate::Failed(_))) {
            // Without an id, which never happens, Lambda takes the batch as failed.
            response.add_failure(record.message_id.clone().unwrap_or_default());
        }
        Ok(response)
    }
}
