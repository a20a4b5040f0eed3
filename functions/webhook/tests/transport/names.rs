//! A resolver that says what a test wants, in place of the system's.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use guard::{Policy, Resolve};
use rustls::RootCertStore;
use webhook::transport::Reach;

/// The answers still to give, the last of them for good, and the names asked for.
pub(crate) struct Names {
    answers: Mutex<VecDeque<io::Result<Vec<IpAddr>>>>,
    always: Vec<IpAddr>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    /// Every name has this one address.
    pub(crate) fn all_at(address: IpAddr) -> Arc<Self> {
        Arc::new(Self { always: vec![address], ..Self::in_turn(vec![]) })
    }

    /// One answer after the other, whatever is asked, and then none.
    pub(crate) fn in_turn(answers: Vec<io::Result<Vec<IpAddr>>>) -> Self {
        Self { answers: Mutex::new(answers.into()), always: vec![], asked: Mutex::default() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(self.always.clone()));
        Box::pin(async move { answer })
    }
}

/// Loopback may be connected to, and names are what the resolver says; no certificate is trusted.
pub(crate) fn reach(resolver: Arc<dyn Resolve>) -> Reach {
    Reach { policy: Policy::with_loopback(), resolver, roots: Arc::new(RootCertStore::empty()) }
}
