//! A schedule that triggers a function.

use std::sync::Arc;
use std::time::Duration;

use runtime::Worker;
use tokio::time::{Instant, MissedTickBehavior};

use super::background::BackgroundTask;
use super::invoke::invoke;
use crate::init;
use crate::switches::Switch;

/// Runs a worker every `period`, for the first time after one period, and never twice at the same time. An invocation
/// that fails or takes longer than `timeout` is logged, and the next one starts when it is due.
pub fn schedule<W>(period: Duration, timeout: Duration, worker: W) -> BackgroundTask
where
    W: Worker<Event: Default>,
{
    switched_schedule(Arc::default(), period, timeout, worker)
}

/// Does the same, and leaves out the runs that come while the switch is off.
pub(super) fn switched_schedule<W>(
    switch: Arc<Switch>,
    period: Duration,
    timeout: Duration,
    worker: W,
) -> BackgroundTask
where
    W: Worker<Event: Default>,
{
    BackgroundTask::start(async move {
        init::log_failed_warm_up(worker.warm_up().await);
        let worker = Arc::new(worker);
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let Some(_pass) = switch.try_enter() else { continue };
            if let Err(error) = invoke(&worker, W::Event::default(), timeout).await {
                tracing::error!(error, "scheduled invocation failed");
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Error;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    /// Fails in a different way on each run, and reports each run.
    struct Failing {
        runs: AtomicU32,
        running: AtomicU32,
        runs_sender: UnboundedSender<u32>,
    }

    impl Worker for Failing {
        type Event = serde_json::Value;
        type Response = ();

        async fn work(&self, _: serde_json::Value) -> Result<(), Error> {
            assert_eq!(self.running.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            let run = self.runs.fetch_add(1, Ordering::SeqCst);
            if run == 3 {
                // This takes longer than the period.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.running.store(0, Ordering::SeqCst);
            self.runs_sender.send(run)?;
            match run {
                0 => Err("failed".into()),
                1 => panic!("a fault"),
                2 => std::future::pending().await,
                _ => Ok(()),
            }
        }
    }

    #[tokio::test]
    async fn errors_panics_and_time_outs_do_not_end_it_and_runs_never_overlap() {
        let (runs_sender, mut runs) = unbounded_channel();
        let worker = Failing { runs: AtomicU32::new(0), running: AtomicU32::new(0), runs_sender };
        let running = schedule(Duration::from_millis(5), Duration::from_millis(100), worker);
        for expected in 0..8 {
            assert_eq!(runs.recv().await, Some(expected));
        }
        drop(running);
        while runs.recv().await.is_some() {}
    }
}
