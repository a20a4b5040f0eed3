//! Checks, before a function's first request, that every resource it uses exists and may be used. This also opens the
//! connections that the first request needs.

mod probe;
mod problem;

use std::time::Duration;

use futures_util::future::join_all;
use thiserror::Error;

pub use probe::{Probe, ProbeFuture, batch_get, get, nobody, query, update};
pub use problem::{Problem, ResourceKind};

/// How long to wait for answers. Lambda gives the whole init phase ten seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The resources to check, each at most once.
#[derive(Default)]
pub struct Preflight(Vec<ResourceProbe>);

struct ResourceProbe {
    kind: ResourceKind,
    name: String,
    found: ProbeFuture,
}

/// Every problem that will not go away by itself. Each names the resource that has it.
#[derive(Debug, Error)]
#[error("{}", .0.join("; "))]
pub struct Unusable(pub Vec<String>);

impl Preflight {
    /// Adds a resource and the call that checks it, unless the resource was added before.
    pub fn add(&mut self, kind: ResourceKind, name: &str, found: ProbeFuture) {
        if !self.0.iter().any(|check| check.kind == kind && check.name == name) {
            self.0.push(ResourceProbe { kind, name: name.to_owned(), found });
        }
    }

    /// Checks all resources at the same time, for at most three seconds. Problems that will not go away by themselves
    /// are the error. If there are none, the problems that may go away are returned.
    pub async fn run(self) -> Result<Vec<String>, Unusable> {
        let found = join_all(self.0.into_iter().map(ResourceProbe::run)).await;
        let (wrong, passing): (Vec<_>, Vec<_>) = found.into_iter().flatten().partition(|(lasts, _)| *lasts);
        let sentences = |problems: Vec<(bool, String)>| problems.into_iter().map(|(_, sentence)| sentence).collect();
        if wrong.is_empty() { Ok(sentences(passing)) } else { Err(Unusable(sentences(wrong))) }
    }
}

impl ResourceProbe {
    /// Returns whether the problem lasts, and a sentence about it; `None` if there is no problem.
    async fn run(self) -> Option<(bool, String)> {
        let found = tokio::time::timeout(PROBE_TIMEOUT, self.found).await;
        let problem =
            found.unwrap_or_else(|_| Err(Problem::Unreachable(format!("no answer within {PROBE_TIMEOUT:?}")))).err()?;
        Some((problem.lasts(), problem.sentence(self.kind, &self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::future::ready;

    fn checks(found: Vec<ProbeFuture>) -> Preflight {
        let mut checks = Preflight::default();
        found.into_iter().zip(["a", "b", "c"]).for_each(|(found, name)| checks.add(ResourceKind::Table, name, found));
        checks
    }

    #[tokio::test]
    async fn what_may_pass_is_told_and_what_lasts_is_an_error() {
        let busy = || ready(Err(Problem::Unreachable("busy".to_owned()))).boxed();
        let passing = checks(vec![ready(Ok(())).boxed(), busy(), ready(Ok(())).boxed()]).run().await.unwrap();
        assert_eq!(passing, ["table b cannot be reached (busy)"]);

        let missing = || ready(Err(Problem::Missing)).boxed();
        let unusable = checks(vec![missing(), busy(), missing()]).run().await.unwrap_err();
        assert_eq!(unusable.to_string(), "table a does not exist; table c does not exist");
    }
}
