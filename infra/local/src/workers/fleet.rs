//! A queue that triggers a function. As in Lambda, the number of instances follows the work.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use runtime::Worker;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::background::BackgroundTask;
use super::poller::EventSource;
use crate::init;

/// A function with its idle instances, and room for more.
struct Fleet<W, F> {
    source: EventSource,
    idle: Mutex<Vec<Arc<W>>>,
    free: Semaphore,
    new_instance: F,
}

/// Hands batches of a queue to at most `max_instances` instances of a function, one batch at a time each. An instance
/// is created when all others are busy. Only one call at a time waits for messages: several would share messages that
/// arrive together, and each would get a small batch.
pub fn poll_with_fleet<W, F>(source: EventSource, max_instances: usize, new_instance: F) -> BackgroundTask
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
    F: Fn() -> W + Send + Sync + 'static,
{
    let fleet = Arc::new(Fleet { source, idle: Mutex::default(), free: Semaphore::new(max_instances), new_instance });
    BackgroundTask::start(async move {
        let first = fleet.take().await;
        fleet.put_back(first);
        fleet.receive().await;
    })
}

impl<W, F> Fleet<W, F>
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
    F: Fn() -> W + Send + Sync + 'static,
{
    async fn receive(self: Arc<Self>) {
        let mut invocations = JoinSet::new();
        loop {
            while invocations.try_join_next().is_some() {}
            // Waits for a free instance before it receives messages, because nobody else gets them from then on.
            let Ok(room) = self.free.acquire().await else { return };
            let pass = self.source.switch.enter().await;
            let messages = self.source.receive().await;
            if messages.is_empty() {
                continue;
            }
            room.forget();
            let fleet = Arc::clone(&self);
            invocations.spawn(async move {
                let _pass = pass;
                let instance = fleet.take().await;
                // An instance that failed is not used again, as in Lambda.
                if fleet.source.hand_over(&instance, messages).await {
                    fleet.put_back(instance);
                }
                fleet.free.add_permits(1);
            });
        }
    }

    async fn take(&self) -> Arc<W> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(instance) = idle {
            return instance;
        }
        let instance = (self.new_instance)();
        init::log_failed_warm_up(instance.warm_up().await);
        Arc::new(instance)
    }

    fn put_back(&self, instance: Arc<W>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
    }
}
