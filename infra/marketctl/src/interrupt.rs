//! Ctrl-C during long work. The first ends it in good order, with a summary. The second ends the process at once.

use std::sync::Arc;

use tokio::sync::Notify;

/// The exit code of a process that Ctrl-C has ended, as shells know it.
const INTERRUPTED: i32 = 130;

/// Waits for Ctrl-C.
pub(crate) struct Interrupt(Arc<Notify>);

impl Interrupt {
    /// From now on Ctrl-C no longer ends the process by itself.
    pub(crate) fn catch() -> Self {
        let first = Arc::new(Notify::new());
        let told = Arc::clone(&first);
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                told.notify_one();
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(INTERRUPTED);
                }
            }
        });
        Self(first)
    }

    pub(crate) async fn interrupted(&self) {
        self.0.notified().await;
    }
}
