//! A resolver whose answers the test chooses.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rustls::RootCertStore;
use webhook::transport::Reach;
use webhooks::guard::{Policy, Resolve};

/// The answers still to give, the answer to everything after them, and the names asked for so far.
pub(crate) struct ScriptedResolver {
    answers: Mutex<VecDeque<io::Result<Vec<IpAddr>>>>,
    always: Vec<IpAddr>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedResolver {
    /// Resolves every name to this address.
    pub(crate) fn all_at(address: IpAddr) -> Arc<Self> {
        Arc::new(Self { always: vec![address], ..Self::in_turn(vec![]) })
    }

    /// Gives these answers one after the other, whatever the name, and after them no addresses.
    pub(crate) fn in_turn(answers: Vec<io::Result<Vec<IpAddr>>>) -> Self {
        Self { answers: Mutex::new(answers.into()), always: vec![], asked: Mutex::default() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for ScriptedResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(self.always.clone()));
        Box::pin(async move { answer })
    }
}

/// Allows loopback, resolves names with this resolver and trusts no certificate.
pub(crate) fn reach(resolver: Arc<dyn Resolve>) -> Reach {
    Reach { policy: Policy::with_loopback(), resolver, roots: Arc::new(RootCertStore::empty()) }
}
