//! The `pretraffic` function. `CodeDeploy` invokes it once in a deployment, before any new version gets traffic, and waits
//! for its report.
//!
//! It checks every resource of the stack as `marketctl check` does, and invokes the new versions of all functions, so
//! one that does not work stops all of them. It may be invoked any number of times for a deployment.
//!
//! **Invariant: a rollback always goes through.** The hook does not try the version that a deployment goes back to.
//! Otherwise a bad version could not be taken back.

mod deployment;
pub mod inventory;
mod trial;

use std::time::Duration;

use common::aws::{Missing, Patience};
use common::backoff::equal_jitter;
use common::logging::FUNCTION_VARIABLE;
use common::resources::{BASE_BUCKET_VARIABLE, PRETRAFFIC_TIMEOUT, Resources, Table};
use common::runtime::{Error, Service, Worker, catch_panic};
pub use deployment::HookEvent;
use deployment::{Deployments, Direction};
use inventory::{CheckedResource, Clients};
use tokio::time::timeout;
use trial::{Attempt, Invoker, Trial};

/// The variable with the name of the stack.
pub const STACK_VARIABLE: &str = "STACK_NAME";
/// The variable with the ARNs of the new versions, separated by commas.
pub const VERSIONS_VARIABLE: &str = "FUNCTION_VERSIONS";

/// How often a version that fails is tried.
pub const MAX_FAILURES: u32 = 3;
/// How often a version is tried that cannot be invoked yet: it is pending, or no concurrency is left for it.
pub const MAX_DELAYS: u32 = 20;
/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(4);
/// How long all tries may take. If the function ran into its time-out, `CodeDeploy` would wait an hour for its report.
const LIMIT: Duration = PRETRAFFIC_TIMEOUT.saturating_sub(Duration::from_mins(3));

pub struct Pretraffic {
    deployments: Deployments,
    invoker: Invoker,
    clients: Clients,
    stack: String,
    resources: Resources,
    bucket: String,
    versions: Vec<String>,
    /// The name by which the function invokes itself.
    own_name: String,
    pause: Duration,
    limit: Duration,
}

/// What is reported about a deployment.
enum Verdict {
    Passed,
    /// What is wrong.
    Failed(Vec<String>),
    /// Nothing yet: no concurrency was left to try all versions.
    Open,
}

/// Why a version gets no traffic.
enum Refusal {
    Failed(String),
    Throttled,
}

/// Builds the function from its environment.
pub fn worker(service: &Service<'_>) -> Result<Pretraffic, Missing> {
    let [stack, bucket, versions] = service.variables([STACK_VARIABLE, BASE_BUCKET_VARIABLE, VERSIONS_VARIABLE])?;
    let tables = service.variables(Table::ALL.map(Table::variable))?;
    let (environment, patience) = (service.environment(), Patience::Bulk);
    let own_name = service.lambda_variable(FUNCTION_VARIABLE).ok_or_else(|| Missing(vec![FUNCTION_VARIABLE]))?;
    Ok(Pretraffic {
        deployments: Deployments::new(environment),
        invoker: Invoker::new(environment),
        clients: Clients {
            dynamodb: environment.dynamodb(patience),
            sqs: common::queues::client(environment, patience),
            secrets: webhooks::secrets::client(environment, patience),
            s3: replica::objects::client(environment, patience),
        },
        resources: Resources::new(&stack).with_tables(tables),
        stack,
        bucket,
        versions: versions.split(',').map(str::to_owned).collect(),
        own_name,
        pause: PAUSE,
        limit: LIMIT,
    })
}

impl Worker for Pretraffic {
    type Event = HookEvent;
    type Response = ();

    async fn work(&self, event: HookEvent) -> Result<(), Error> {
        match self.deployments.direction(&event).await? {
            Direction::Over => tracing::info!("the deployment is over"),
            Direction::Back => self.report(&event, &Verdict::Passed).await?,
            Direction::Forward => {
                let verdict = catch_panic(timeout(self.limit, Box::pin(self.verdict()))).await;
                let late = |_| Verdict::Failed(vec![format!("not all versions answered within {:?}", self.limit)]);
                // Otherwise CodeDeploy would wait for an hour.
                let panicked = || Ok(Verdict::Failed(vec!["the hook panicked".to_owned()]));
                self.report(&event, &verdict.unwrap_or_else(panicked).unwrap_or_else(late)).await?;
            }
        }
        Ok(())
    }
}

impl Pretraffic {
    /// Pauses for this long between two tries, instead of four seconds.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Lets all tries take this long at most, instead of twelve minutes.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    async fn report(&self, event: &HookEvent, verdict: &Verdict) -> Result<(), Error> {
        match verdict {
            Verdict::Passed => {
                tracing::info!("new versions may get traffic");
                self.deployments.report(event, true).await
            }
            Verdict::Failed(problems) => {
                tracing::error!(problems = problems.join("; "), "new versions get no traffic");
                self.deployments.report(event, false).await
            }
            Verdict::Open => {
                tracing::warn!("no concurrency is left, so this is tried again");
                self.invoker.invoke_later(&self.own_name, event).await
            }
        }
    }

    /// Checks the resources, then tries the versions one after the other, because a new AWS account has no more than
    /// ten concurrent executions for everything.
    async fn verdict(&self) -> Verdict {
        let bucket = async { Ok(self.bucket.clone()) };
        let checked = inventory::check(&self.clients, &self.resources, bucket).await;
        let wrong =
            |CheckedResource { kind, name, found, .. }| found.err().map(|problem| problem.sentence(kind, &name));
        let mut problems: Vec<String> = checked.into_iter().filter_map(wrong).collect();
        for version in &self.versions {
            match self.try_version(version).await {
                Ok(()) => {}
                Err(Refusal::Failed(why)) => problems.push(format!("{version} {why}")),
                Err(Refusal::Throttled) => return Verdict::Open,
            }
        }
        if problems.is_empty() { Verdict::Passed } else { Verdict::Failed(problems) }
    }

    async fn try_version(&self, version: &str) -> Result<(), Refusal> {
        let Some(trial) = Trial::for_version(version, &self.stack) else {
            return Err(Refusal::Failed("is of a function that nothing is known to try with".to_owned()));
        };
        let (mut failures, mut delays) = (1, 1);
        loop {
            match self.invoker.invoke(version, &trial).await {
                Attempt::Passed => return Ok(()),
                Attempt::Failed(_) if failures < MAX_FAILURES => failures += 1,
                Attempt::NotNow(_) | Attempt::Throttled if delays < MAX_DELAYS => delays += 1,
                Attempt::Failed(why) | Attempt::NotNow(why) => return Err(Refusal::Failed(why)),
                Attempt::Throttled => return Err(Refusal::Throttled),
            }
            tokio::time::sleep(equal_jitter(self.pause)).await;
        }
    }
}
