//! Work in the background.

use std::future::Future;

use tokio::task::JoinHandle;

/// Work that goes on in the background, such as a poller or a schedule. It stops when this is dropped.
#[derive(Debug)]
pub struct BackgroundTask(JoinHandle<()>);

impl BackgroundTask {
    pub(crate) fn start(forever: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(forever))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
