//! The `webhook` function, triggered by the delivery queues: makes the attempts that their messages call for.
//!
//! A message is acknowledged only after what it calls for is recorded, after it has proved void, or after a copy of it
//! was sent: to the retry lane or, if it met a defect, to the dead-letter queue. After a crash at any step the message
//! arrives again. The delivery's lease, token and attempt count then decide whether it still calls for an attempt.
//!
//! Attempts to endpoints that respond promptly are made at once. All others wait in the table for the drain of their
//! account.

mod attempt;
mod batch;
mod drain;
mod messages;
mod outcome;
mod record;
pub mod transport;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::metrics::Meter;
use common::preflight;
use common::queues::isolating_panics;
use common::resources::Queue;
use common::runtime::{Error, Service, Worker};
use futures_util::FutureExt;
use webhooks::delivery::Lane;
use webhooks::promptness::Promptness;
use webhooks::secrets::KeyringCache;
use webhooks::store::WebhookStore;
use webhooks::{Drains, Notices, Queues, Schedule};

use transport::{Reach, Transport};

/// The function. Clones share their connections and the cached keyring.
#[derive(Clone)]
pub struct Webhook {
    store: WebhookStore,
    queues: Queues,
    drains: Drains,
    notices: Notices,
    promptness: Arc<Promptness>,
    keyring: KeyringCache,
    transport: Transport,
    schedule: Schedule,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
    /// How long events waited for their first attempt, in milliseconds: one entry for each first attempt that was begun
    /// since the last log line.
    waits: Arc<Mutex<Vec<u64>>>,
    /// How many attempts wait because the keyring lacks a key, since the last log line.
    keyless: Arc<AtomicU64>,
    sqs: common::queues::Client,
    /// The URL of the dead-letter queue.
    dead_queue: String,
}

/// Builds the function from its environment. The caller decides where it may connect and how long retries wait.
pub fn worker(service: &Service<'_>, transport: Transport, schedule: Schedule) -> Result<Webhook, Missing> {
    let store = WebhookStore::from_service(service, Patience::Request, preflight::batch_get)?;
    let queues = [Queue::WebhooksRetry, Queue::WebhooksSlow, Queue::WebhooksDead];
    let (sqs, [retry, slow, dead_queue]) = common::queues::from_service(service, queues)?;
    let queues = Queues::new(sqs.clone(), [(Lane::Retry, retry), (Lane::Slow, slow)]);
    Ok(Webhook {
        notices: Notices::from_service(service, store.clone())?,
        drains: Drains::new(store.clone(), queues.clone(), schedule),
        promptness: Arc::default(),
        queues,
        keyring: KeyringCache::from_service(service)?,
        store,
        transport,
        schedule,
        clock: Arc::clone(&service.clock),
        meter: Arc::clone(&service.meter),
        waits: Arc::default(),
        keyless: Arc::default(),
        sqs,
        dead_queue,
    })
}

/// Builds the function as it is deployed: it connects only to the public internet (specification 6.12), and retries on
/// the schedule of specification 6.8.1.
pub fn deployed(service: &Service<'_>) -> Result<Webhook, Error> {
    Ok(worker(service, Transport::new(Reach::public())?, Schedule::default())?)
}

impl Worker for Webhook {
    type Event = SqsEvent;
    type Response = SqsBatchResponse;

    async fn work(&self, event: SqsEvent) -> Result<SqsBatchResponse, Error> {
        Ok(isolating_panics(&self.meter, &event.records, |records| self.handle(records).boxed()).await)
    }
}
