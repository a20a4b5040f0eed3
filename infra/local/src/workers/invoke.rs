//! Invokes a function once, as Lambda does.

use std::sync::Arc;
use std::time::Duration;

use runtime::Worker;
use tokio::task::JoinSet;

/// Hands one event to a worker. A panic or the time-out ends the invocation, but not the caller.
pub(super) async fn invoke<W: Worker>(
    worker: &Arc<W>,
    event: W::Event,
    timeout: Duration,
) -> Result<W::Response, String> {
    let worker = Arc::clone(worker);
    let mut invocation = JoinSet::new();
    invocation.spawn(async move { worker.work(event).await });
    match tokio::time::timeout(timeout, invocation.join_next()).await {
        Ok(Some(Ok(Ok(response)))) => Ok(response),
        Ok(Some(Ok(Err(error)))) => Err(error.to_string()),
        Ok(Some(Err(panic))) => Err(panic.to_string()),
        Ok(None) | Err(_) => Err(format!("timed out after {} s", timeout.as_secs())),
    }
}
