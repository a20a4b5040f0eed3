//! Checks, before a function's first request, that every resource it uses exists and may be used. This also opens the
//! connections that the first request needs.

mod probe;
mod problem;

use std::time::Duration;

use futures_util::future::join_all;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub use probe::{Probe, ProbeFuture, batch_get, get, nobody, query, update};
pub use problem::{Problem, ResourceKind};

use crate::backoff::equal_jitter;

/// How long to wait for an answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// For how long a refused permission may still come. Lambda gives the whole init phase ten seconds, and a function whose
/// init takes longer is started again within the time-out of its first invocation.
const PATIENCE: Duration = Duration::from_secs(8);
/// The longest pause before a resource is asked again.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The resources to check, each at most once.
#[derive(Default)]
pub struct Preflight(Vec<ResourceProbe>);

struct ResourceProbe {
    kind: ResourceKind,
    name: String,
    probe: Box<dyn Fn() -> ProbeFuture + Send + Sync>,
    /// Whether the function cannot do its work without the resource.
    is_required: bool,
}

/// What is wrong with a resource.
struct Finding {
    sentence: String,
    /// Whether somebody has to change something before the resource can be used.
    lasts: bool,
    /// Whether the function must not start.
    is_fatal: bool,
}

/// Why a function cannot start: every problem that will not go away by itself. Each names the resource that has it.
#[derive(Debug, Error)]
#[error("{}", .0.join("; "))]
pub struct Unusable(pub Vec<String>);

impl Preflight {
    /// Adds a resource that the function requires, and the call that checks it.
    pub fn add(&mut self, kind: ResourceKind, name: &str, probe: impl Fn() -> ProbeFuture + Send + Sync + 'static) {
        if let Some(known) = self.0.iter_mut().find(|known| known.kind == kind && known.name == name) {
            known.is_required = true;
        } else {
            self.0.push(ResourceProbe { kind, name: name.to_owned(), probe: Box::new(probe), is_required: true });
        }
    }

    /// Adds resources that the function can start without, except those that it requires anyway.
    pub fn add_optional(&mut self, others: Self) {
        for other in others.0 {
            if !self.0.iter().any(|known| known.kind == other.kind && known.name == other.name) {
                self.0.push(ResourceProbe { is_required: false, ..other });
            }
        }
    }

    /// Checks all resources at the same time, for at most eight seconds. If a required one has a problem that will not
    /// go away by itself, all such problems are the error. Otherwise all problems are returned.
    pub async fn run(self) -> Result<Vec<String>, Unusable> {
        let found = join_all(self.0.iter().map(ResourceProbe::run)).await;
        let (lasting, passing): (Vec<_>, Vec<_>) = found.into_iter().flatten().partition(|finding| finding.lasts);
        let is_fatal = lasting.iter().any(|finding| finding.is_fatal);
        let sentences = |findings: Vec<Finding>| findings.into_iter().map(|finding| finding.sentence);
        if is_fatal {
            Err(Unusable(sentences(lasting).collect()))
        } else {
            Ok(sentences(lasting).chain(sentences(passing)).collect())
        }
    }
}

impl ResourceProbe {
    /// Asks for the resource. If the function requires it, a refusal that may pass is asked again.
    async fn run(&self) -> Option<Finding> {
        let deadline = Instant::now() + PATIENCE;
        let mut problem = self.ask().await.err()?;
        while self.is_required && problem.may_settle() {
            match timeout_at(deadline, self.ask_again()).await {
                Ok(asked) => problem = asked.err()?,
                Err(_) => break,
            }
        }
        let lasts = problem.lasts();
        Some(Finding { sentence: problem.sentence(self.kind, &self.name), lasts, is_fatal: lasts && self.is_required })
    }

    async fn ask_again(&self) -> Result<(), Problem> {
        sleep(equal_jitter(LONGEST_PAUSE)).await;
        self.ask().await
    }

    async fn ask(&self) -> Result<(), Problem> {
        let late = |_| Problem::Unreachable(format!("no answer within {PROBE_TIMEOUT:?}"));
        timeout(PROBE_TIMEOUT, (self.probe)()).await.map_err(late)?
    }
}

#[cfg(test)]
mod tests;
