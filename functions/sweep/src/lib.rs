//! The `sweep` function, triggered by a schedule: calls the drains of accounts for which something is due, and sends
//! notices that were not sent at once.
//!
//! Any number of runs may overlap, and any of them may die at any step. A message that is sent twice is void the second
//! time.

mod run;

use std::sync::Arc;

use platform::aws::{Missing, Patience};
use platform::metrics::Meter;
use platform::resources::Queue;
use platform::service::Service;
use runtime::{Error, Worker, names_no_rule};
use serde_json::Value;
use types::clock::Clock;
use types::timestamp::Timestamp;
use webhooks::drain::LOST_SECONDS;
use webhooks::store::WebhookStore;
use webhooks::{Notices, Queues, Schedule};

pub struct Sweep {
    store: WebhookStore,
    queues: Queues,
    notices: Notices,
    schedule: Schedule,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

/// Builds the function from its environment. The caller decides how long retries wait.
pub fn worker(service: &Service<'_>, schedule: Schedule) -> Result<Sweep, Missing> {
    let store = WebhookStore::from_service(service, Patience::Bulk, webhooks::store::probe_wake_index)?;
    let (sqs, [slow]) = queues::from_service(service, [Queue::WebhooksSlow])?;
    Ok(Sweep {
        notices: Notices::from_service(service, store.clone())?,
        queues: Queues::of_drains(sqs, slow),
        store,
        schedule,
        clock: Arc::clone(&service.clock),
        meter: Arc::clone(&service.meter),
    })
}

impl Sweep {
    /// Returns when a message that comes out of its queue at `at` is taken for lost.
    fn lost_at(&self, at: Timestamp) -> Timestamp {
        at.plus_millis(i64::from(self.schedule.scaled(LOST_SECONDS)) * 1_000)
    }
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
