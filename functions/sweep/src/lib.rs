//! The `sweep` function, triggered by a schedule: puts what waits in the table back into the queues. It sends parked
//! retries shortly before they are due, sends again the messages that must be taken for lost, and sends notices that
//! were not sent at once.
//!
//! Any number of runs may overlap, and any of them may die at any step. A message that is sent twice is void the second
//! time, and a delivery's wake-up moves only after its message was sent.

mod aside;
mod backlog;
mod memory;
mod run;
mod swept;

use std::sync::Arc;

use platform::aws::{Missing, Patience};
use platform::metrics::Meter;
use platform::resources::Queue;
use platform::service::Service;
use runtime::{Error, Worker, names_no_rule};
use serde_json::Value;
use types::clock::Clock;
use webhooks::store::WebhookStore;
use webhooks::{Notices, Queues, Schedule};

use memory::Memory;

pub struct Sweep {
    store: WebhookStore,
    queues: Queues,
    notices: Notices,
    schedule: Schedule,
    memory: Memory,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

/// Builds the function from its environment. The caller decides how long retries wait.
pub fn worker(service: &Service<'_>, schedule: Schedule) -> Result<Sweep, Missing> {
    let store = WebhookStore::from_service(service, Patience::Bulk, webhooks::store::probe_wake_index)?;
    let queues = [Queue::WebhooksFirst, Queue::WebhooksRetry, Queue::Notices];
    let (sqs, [first, retry, notices]) = queues::from_service(service, queues)?;
    Ok(Sweep {
        notices: Notices::new(store.clone(), sqs.clone(), notices),
        queues: Queues::new(sqs, first, retry),
        store,
        schedule,
        memory: Memory::default(),
        clock: Arc::clone(&service.clock),
        meter: Arc::clone(&service.meter),
    })
}

impl Worker for Sweep {
    /// The schedule's event says nothing that matters. One that names no rule only finds out whether the function starts.
    type Event = Value;
    type Response = ();

    async fn work(&self, event: Value) -> Result<(), Error> {
        if names_no_rule(&event) {
            return Ok(());
        }
        self.run().await.report(&self.meter)
    }
}
