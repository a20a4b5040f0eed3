//! Looking at what a function uses before its first request: whether it is there and may be used. It opens the
//! connections that the first request needs.

mod ask;
mod problem;

use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use thiserror::Error;

pub use ask::{Ask, batch_get, get, query, queue, sweep, update};
pub use problem::{Kind, Problem};

/// The init phase has ten seconds; who does not answer sooner has not answered.
const LONGEST: Duration = Duration::from_secs(3);

/// What is to be looked at.
#[derive(Default)]
pub struct Looks(Vec<Look>);

struct Look {
    kind: Kind,
    name: String,
    found: BoxFuture<'static, Result<(), Problem>>,
}

/// What is wrong and will not pass: every problem, each with the name of what has it.
#[derive(Debug, Error)]
#[error("{}", .0.join("; "))]
pub struct Unusable(pub Vec<String>);

impl Looks {
    /// Adds a resource, and how it is looked at; once is enough.
    pub fn at(&mut self, kind: Kind, name: &str, found: BoxFuture<'static, Result<(), Problem>>) {
        if !self.0.iter().any(|look| look.kind == kind && look.name == name) {
            self.0.push(Look { kind, name: name.to_owned(), found });
        }
    }

    /// Looks at everything at once, for three seconds at most. Problems that may pass are returned.
    pub async fn look(self) -> Result<Vec<String>, Unusable> {
        let found = join_all(self.0.into_iter().map(Look::look)).await;
        let (wrong, passing): (Vec<_>, Vec<_>) = found.into_iter().flatten().partition(|(lasts, _)| *lasts);
        let sentences = |problems: Vec<(bool, String)>| problems.into_iter().map(|(_, sentence)| sentence).collect();
        if wrong.is_empty() { Ok(sentences(passing)) } else { Err(Unusable(sentences(wrong))) }
    }
}

impl Look {
    /// Whether the problem lasts, and what it is.
    async fn look(self) -> Option<(bool, String)> {
        let found = tokio::time::timeout(LONGEST, self.found).await;
        let problem =
            found.unwrap_or_else(|_| Err(Problem::Unreachable(format!("no answer within {LONGEST:?}")))).err()?;
        Some((problem.lasts(), problem.of(self.kind, &self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::future::ready;

    fn looks(found: Vec<BoxFuture<'static, Result<(), Problem>>>) -> Looks {
        let mut looks = Looks::default();
        found.into_iter().zip(["a", "b", "c"]).for_each(|(found, name)| looks.at(Kind::Table, name, found));
        looks
    }

    #[tokio::test]
    async fn what_may_pass_is_told_and_what_lasts_is_an_error() {
        let busy = || ready(Err(Problem::Unreachable("busy".to_owned()))).boxed();
        let passing = looks(vec![ready(Ok(())).boxed(), busy(), ready(Ok(())).boxed()]).look().await.unwrap();
        assert_eq!(passing, ["table b cannot be reached (busy)"]);

        let missing = || ready(Err(Problem::Missing)).boxed();
        let unusable = looks(vec![missing(), busy(), missing()]).look().await.unwrap_err();
        assert_eq!(unusable.to_string(), "table a does not exist; table c does not exist");
    }
}
