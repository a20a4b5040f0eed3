//! What preflight makes of answers, on simulated time.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::time::Instant;

use super::*;

/// A resource that gives these answers, one after another, and the last one for ever. It counts how often it is asked.
#[derive(Clone)]
struct Answers {
    answers: Arc<Mutex<VecDeque<Result<(), Problem>>>>,
    asked: Arc<AtomicUsize>,
}

impl Answers {
    fn new(answers: impl IntoIterator<Item = Result<(), Problem>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    fn next(&self) -> ProbeFuture {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        ready(answer.unwrap()).boxed()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn denied() -> Result<(), Problem> {
    Err(Problem::Denied("AccessDeniedException".to_owned()))
}

fn busy() -> Result<(), Problem> {
    Err(Problem::Unreachable("busy".to_owned()))
}

fn missing() -> Result<(), Problem> {
    Err(Problem::Missing)
}

/// Checks tables that give these answers, named a, b and c.
fn checks(tables: &[&Answers]) -> Preflight {
    let mut checks = Preflight::default();
    for (answers, name) in tables.iter().zip(["a", "b", "c"]) {
        let answers = Answers::clone(answers);
        checks.add(ResourceKind::Table, name, move || answers.next());
    }
    checks
}

#[tokio::test]
async fn what_may_pass_is_told_and_what_lasts_is_an_error() {
    let [fine, busy, missing] = [Answers::new([Ok(())]), Answers::new([busy()]), Answers::new([missing()])];
    let passing = checks(&[&fine, &busy, &fine]).run().await.unwrap();
    assert_eq!(passing, ["table b cannot be reached (busy)"]);

    let unusable = checks(&[&missing, &busy, &missing]).run().await.unwrap_err();
    assert_eq!(unusable.to_string(), "table a does not exist; table c does not exist");
}

#[tokio::test(start_paused = true)]
async fn a_refused_permission_that_comes_in_time_is_no_problem() {
    let late = Answers::new([denied(), denied(), Ok(())]);
    assert_eq!(checks(&[&late]).run().await.unwrap(), [""; 0]);
    assert_eq!(late.asked(), 3);

    let then_missing = Answers::new([denied(), missing()]);
    assert_eq!(checks(&[&then_missing]).run().await.unwrap_err().to_string(), "table a does not exist");
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_stays_refused_is_an_error_before_the_init_phase_ends() {
    let (never, begun) = (Answers::new([denied()]), Instant::now());
    let unusable = checks(&[&never]).run().await.unwrap_err();
    assert_eq!(unusable.to_string(), "table a may not be used with these credentials (AccessDeniedException)");
    // Pauses are between 250 and 500 ms.
    assert!((16..=33).contains(&never.asked()), "{}", never.asked());
    assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_asked_for_once() {
    let missing = Answers::new([missing()]);
    checks(&[&missing]).run().await.unwrap_err();
    assert_eq!(missing.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_optional_is_asked_for_once_and_is_no_error() {
    let [missing, denied, fine] = [Answers::new([missing()]), Answers::new([denied()]), Answers::new([Ok(())])];
    let mut preflight = checks(&[&fine]);
    preflight.add_optional(checks(&[&missing, &denied]));
    let told = preflight.run().await.unwrap();
    assert_eq!(told, ["table b may not be used with these credentials (AccessDeniedException)"]);
    assert_eq!((missing.asked(), denied.asked(), fine.asked()), (0, 1, 1), "the required table has the same name");

    let mut preflight = Preflight::default();
    preflight.add_optional(checks(&[&missing]));
    preflight.add(ResourceKind::Table, "a", {
        let missing = missing.clone();
        move || missing.next()
    });
    preflight.run().await.unwrap_err();
}
