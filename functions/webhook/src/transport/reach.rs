//! What a client can get to, and whom it believes.

use std::sync::Arc;

use guard::{Policy, Resolve, SystemResolver};
use rustls::RootCertStore;

/// Which addresses a client connects to, who tells it the addresses of a name, and whose certificates
/// it accepts.
#[derive(Clone)]
pub struct Reach {
    /// The addresses that may be connected to.
    pub policy: Policy,
    /// Who knows the addresses of a name. It need not be trusted: what it says is checked.
    pub resolver: Arc<dyn Resolve>,
    /// The authorities whose certificates are accepted.
    pub roots: Arc<RootCertStore>,
}

impl Reach {
    /// The public internet, as deployed: the system's resolver, the roots of the web.
    pub fn public() -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Self { policy: Policy::public(), resolver: Arc::new(SystemResolver), roots: Arc::new(roots) }
    }
}
