//! The signals to end: Ctrl-C from the user, or SIGTERM from a supervisor.

use std::io;

/// Waits for signals to end.
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts to listen for signals.
    pub fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        Ok(Self {
            #[cfg(unix)]
            terminate,
        })
    }

    /// Waits for the next Ctrl-C or SIGTERM.
    pub async fn next(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = self.terminate.recv() => Ok(()),
        }
        #[cfg(not(unix))]
        tokio::signal::ctrl_c().await
    }
}
