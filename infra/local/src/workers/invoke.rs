//! One invocation, as Lambda makes it.

use std::sync::Arc;
use std::time::Duration;

use runtime::Worker;
use tokio::task::JoinSet;

/// Hands a worker one event. A panic ends the invocation and not the caller, and so does the time-out.
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
