//! The user's wish to end: Ctrl-C, or what a supervisor sends.

use std::io;

/// Listens from its creation on.
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts to listen.
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
