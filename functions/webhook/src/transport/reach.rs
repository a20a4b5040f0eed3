//! Where a client may connect, and whom it trusts.

use std::sync::Arc;

use guard::{Policy, Resolve, SystemResolver};
use rustls::RootCertStore;

/// Which addresses a client may connect to, how it resolves names, and whose certificates it accepts.
#[derive(Clone)]
pub struct Reach {
    /// The addresses that the client may connect to.
    pub policy: Policy,
    /// Resolves names to addresses. It need not be trusted, because its answers are checked.
    pub resolver: Arc<dyn Resolve>,
    /// The authorities whose certificates are accepted.
    pub roots: Arc<RootCertStore>,
}

impl Reach {
    /// Returns the reach of the deployed function: the public internet, the system's resolver, and the root
    /// certificates of the web.
    pub fn public() -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Self { policy: Policy::public(), resolver: Arc::new(SystemResolver), roots: Arc::new(roots) }
    }
}
