//! A queue that triggers a function with as many instances as there is work for, as Lambda scales.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use runtime::Worker;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::poller::Source;
use super::running::Running;
use crate::init;

/// The instances of a function that no batch occupies.
struct Fleet<W, F> {
    source: Source,
    idle: Mutex<Vec<Arc<W>>>,
    free: Semaphore,
    make: F,
}

/// Hands batches of a queue to at most so many instances of a function, one batch at a time each. An
/// instance is made when all others are occupied. One call at a time asks for messages: several that wait
/// would share what arrives together, in small batches.
pub fn poll_with_fleet<W, F>(source: Source, most: usize, make: F) -> Running
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
    F: Fn() -> W + Send + Sync + 'static,
{
    let fleet = Arc::new(Fleet { source, idle: Mutex::default(), free: Semaphore::new(most), make });
    Running::start(async move {
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
            // Waits for room before it takes messages, which nobody else gets then.
            let Ok(room) = self.free.acquire().await else { return };
            let messages = self.source.receive().await;
            if messages.is_empty() {
                continue;
            }
            room.forget();
            let fleet = Arc::clone(&self);
            invocations.spawn(async move {
                let instance = fleet.take().await;
                // Lambda ends an instance that fails.
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
        let instance = (self.make)();
        init::tell(instance.warm_up().await);
        Arc::new(instance)
    }

    fn put_back(&self, instance: Arc<W>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
    }
}
