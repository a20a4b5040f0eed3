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
mod received;
mod settle;
pub mod transport;

use std::sync::{Arc, Mutex, PoisonError};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use platform::aws::{Missing, Patience};
use platform::metrics::Meter;
use platform::preflight;
use platform::resources::Queue;
use platform::service::Service;
use queues::{MessageCopy, send_copies};
use runtime::{Error, Worker};
use secrets::KeyringCache;
use types::clock::Clock;
use webhooks::delivery::Lane;
use webhooks::promptness::Promptness;
use webhooks::store::WebhookStore;
use webhooks::{Drains, Notices, Queues, Schedule};

use received::DispatchOutcome;
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
    sqs: queues::Client,
    /// The URL of the dead-letter queue.
    dead_queue: String,
}

/// Builds the function from its environment. The caller decides where it may connect and how long retries wait.
pub fn worker(service: &Service<'_>, transport: Transport, schedule: Schedule) -> Result<Webhook, Missing> {
    let store = WebhookStore::from_service(service, Patience::Request, preflight::batch_get)?;
    let queues = [Queue::WebhooksRetry, Queue::WebhooksSlow, Queue::WebhooksDead];
    let (sqs, [retry, slow, dead_queue]) = queues::from_service(service, queues)?;
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
        let (mut outcomes, drained) = self.handle(&event.records).await;
        self.bury_defective(&event.records, &mut outcomes).await;
        let waits = std::mem::take(&mut *self.waits.lock().unwrap_or_else(PoisonError::into_inner));
        received::log(&self.meter, &event.records, &outcomes, &drained, &waits);
        let mut response = SqsBatchResponse::default();
        for (record, _) in
            event.records.iter().zip(&outcomes).filter(|(_, outcome)| matches!(outcome, DispatchOutcome::Failed(_)))
        {
            // SQS always gives an id. Without one, Lambda would take the whole batch as failed.
            response.add_failure(record.message_id.clone().unwrap_or_default());
        }
        Ok(response)
    }
}

impl Webhook {
    /// Sends a copy of each message that met a defect to the dead-letter queue. If it is not certain that a copy was
    /// sent, its message has failed and stays in its queue.
    ///
    /// The delivery itself stays as it is. If it is pending, the drain of its account makes another attempt.
    pub(crate) async fn bury_defective(&self, records: &[SqsMessage], outcomes: &mut [DispatchOutcome]) {
        let (mut copies, mut unsent) = (Vec::new(), Vec::new());
        for (number, (record, outcome)) in records.iter().zip(outcomes.iter()).enumerate() {
            let DispatchOutcome::Defective(defect) = outcome else { continue };
            match MessageCopy::defective(number, record.body.clone(), defect) {
                Ok(copy) => copies.push(copy),
                Err(error) => unsent.push((number, error.to_string())),
            }
        }
        unsent.extend(send_copies(&self.sqs, &self.dead_queue, copies).await);
        for (number, error) in unsent {
            outcomes[number] = DispatchOutcome::Failed(format!("its copy cannot be sent: {error}"));
        }
    }
}
