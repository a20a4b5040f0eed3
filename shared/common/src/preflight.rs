//! Checks, before a function's first request, that every resource it uses exists and may be used. This also opens the
//! connections that the first request needs. Functions that cannot start and the operator's `marketctl check` describe a
//! problem in the same words.

use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::backoff::equal_jitter;
use crate::closed_enum;
use crate::resources::{PARTITION_KEY, SORT_KEY};
use crate::store::{Row, explain, s};

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

/// A check that is under way. It ends with the resource's problem, if there is one.
pub type ProbeFuture = BoxFuture<'static, Result<(), Problem>>;

/// Checks the table of this name by asking for a row that it does not have.
pub type Probe = fn(&Client, String) -> ProbeFuture;

// The calls that check tables. They change nothing and cost next to nothing. Functions make calls of these kinds anyway,
// so checking a table needs no permission of its own. Each call is a separate function, so a program contains only the
// code of those that it makes.

/// A partition key that no row has.
const NOBODY: &str = "nobody";

/// Checks a table by an `UpdateItem` whose condition never holds.
pub fn update(client: &Client, table: String) -> ProbeFuture {
    let update = client.update_item().table_name(table).set_key(Some(nobody()));
    let update = update.condition_expression("attribute_exists(#pk)").expression_attribute_names("#pk", PARTITION_KEY);
    async move {
        match update.send().await {
            Err(SdkError::ServiceError(refused))
                if matches!(refused.err(), UpdateItemError::ConditionalCheckFailedException(_)) =>
            {
                Ok(())
            }
            updated => Ok(updated.map(drop)?),
        }
    }
    .boxed()
}

/// Checks a table by a `GetItem`.
pub fn get(client: &Client, table: String) -> ProbeFuture {
    let get = client.get_item().table_name(table).set_key(Some(nobody()));
    async move { Ok(get.send().await.map(drop)?) }.boxed()
}

/// Checks a table by a `BatchGetItem`.
pub fn batch_get(client: &Client, table: String) -> ProbeFuture {
    let client = client.clone();
    async move {
        let wanted = KeysAndAttributes::builder().keys(nobody()).build();
        let wanted = wanted.map_err(|error| Problem::Refused(error.to_string()))?;
        Ok(client.batch_get_item().request_items(table, wanted).send().await.map(drop)?)
    }
    .boxed()
}

/// Checks a table by a `Query`.
pub fn query(client: &Client, table: String) -> ProbeFuture {
    let query = client.query().table_name(table).limit(1).key_condition_expression("#pk = :nobody");
    let query = query.expression_attribute_names("#pk", PARTITION_KEY);
    let query = query.expression_attribute_values(":nobody", s(NOBODY));
    async move { Ok(query.send().await.map(drop)?) }.boxed()
}

/// Returns a key that no row has.
pub fn nobody() -> Row {
    [(PARTITION_KEY, NOBODY), (SORT_KEY, NOBODY)].map(|(name, value)| (name.to_owned(), s(value))).into()
}

closed_enum! {
    /// The kinds of resources that a stack is made of.
    pub enum ResourceKind {
        /// In DynamoDB.
        Table = "table",
        /// In SQS.
        Queue = "queue",
        /// In Secrets Manager.
        Secret = "secret",
        /// In S3.
        Bucket = "bucket",
    }
}

/// Why a resource cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// No resource has this name.
    #[error("does not exist")]
    Missing,
    /// The resource exists, but it is being created, changed or deleted.
    #[error("is {0}")]
    NotActive(String),
    /// The table lacks an index that the service uses.
    #[error("lacks its index {0}")]
    NoIndex(&'static str),
    /// The secret does not hold a keyring. The error repeats nothing of what it holds.
    #[error("holds {0}")]
    Content(String),
    /// The caller lacks a permission, or is not known; the service's own words name it.
    #[error("may not be used with these credentials ({0})")]
    Denied(String),
    /// The service refuses for another reason, and would refuse again.
    #[error("cannot be used ({0})")]
    Refused(String),
    /// There is no answer, or it says nothing about the resource: the service is unreachable, throttles or fails.
    #[error("cannot be reached ({0})")]
    Unreachable(String),
}

/// An error whose code contains one of these says nothing about the resource, and neither does a 5xx.
const TRANSIENT_CODES: &[&str] =
    &["Throttl", "LimitExceeded", "ThroughputExceeded", "TooManyRequests", "Timeout", "Internal", "Unavailable"];

/// An error whose code contains one of these is about the caller. IAM is eventually consistent: a role that was just
/// made or changed, and its credentials, may be refused for some seconds. SQS and Secrets Manager refuse in this way too if
/// a key of KMS may not be used.
const DENIED_CODES: &[&str] = &["AccessDenied", "UnrecognizedClient", "InvalidClientTokenId", "InvalidAccessKeyId"];

impl Problem {
    /// Returns a sentence that names the resource and says what is wrong with it.
    pub fn sentence(&self, kind: ResourceKind, name: &str) -> String {
        format!("{} {name} {self}", kind.as_str())
    }

    /// Returns whether the same call may succeed some seconds later, although nobody changes anything.
    const fn may_settle(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// Returns whether somebody has to change something before the resource can be used.
    const fn lasts(&self) -> bool {
        match self {
            Self::Unreachable(_) => false,
            Self::Missing
            | Self::NotActive(_)
            | Self::NoIndex(_)
            | Self::Content(_)
            | Self::Denied(_)
            | Self::Refused(_) => true,
        }
    }
}

impl<E> From<SdkError<E, HttpResponse>> for Problem
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        let status = error.raw_response().map(|response| response.status().as_u16());
        match (error.code(), status) {
            (Some(code), Some(400..500)) if !TRANSIENT_CODES.iter().any(|part| code.contains(part)) => match code {
                "ResourceNotFoundException"
                | "QueueDoesNotExist"
                | "AWS.SimpleQueueService.NonExistentQueue"
                | "NoSuchBucket" => Self::Missing,
                "InvalidRequestException" if explain(&error).contains("deletion") => {
                    Self::NotActive("scheduled for deletion".to_owned())
                }
                _ if DENIED_CODES.iter().any(|part| code.contains(part)) => Self::Denied(explain(&error)),
                _ => Self::Refused(explain(&error)),
            },
            _ => Self::Unreachable(explain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::ready;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

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
}
