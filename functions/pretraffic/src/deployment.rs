//! The deployments of `CodeDeploy` that wait for a report.

use aws_sdk_codedeploy::Client;
use aws_sdk_codedeploy::config::Builder;
use aws_sdk_codedeploy::operation::put_lifecycle_event_hook_execution_status::PutLifecycleEventHookExecutionStatusError;
use aws_sdk_codedeploy::types::{DeploymentCreator, DeploymentInfo, DeploymentStatus, LifecycleEventStatus};
use common::aws::{Environment, Patience};
use common::runtime::Error;
use common::store::explain;
use serde::{Deserialize, Serialize};

/// What `CodeDeploy` tells a hook: which deployment waits, and for which report.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HookEvent {
    pub deployment_id: String,
    pub lifecycle_event_hook_execution_id: String,
}

/// Where a deployment leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To a new version.
    Forward,
    /// To the version before, because a deployment failed.
    Back,
    /// Nowhere any more.
    Over,
}

/// A client of `CodeDeploy`.
pub(crate) struct Deployments(Client);

impl Deployments {
    pub(crate) fn new(environment: &Environment) -> Self {
        let mut config = Builder::from(&environment.config(Patience::Bulk));
        config.set_interceptors(environment.interceptors());
        Self(Client::from_conf(config.build()))
    }

    /// Returns where the deployment leads.
    pub(crate) async fn direction(&self, event: &HookEvent) -> Result<Direction, Error> {
        let get = self.0.get_deployment().deployment_id(&event.deployment_id);
        let found = get.send().await.map_err(|error| explain(&error))?;
        Ok(found.deployment_info.as_ref().map_or(Direction::Forward, direction))
    }

    /// Reports whether the new version may get traffic. A report that was made before stands.
    pub(crate) async fn report(&self, event: &HookEvent, has_passed: bool) -> Result<(), Error> {
        let status = if has_passed { LifecycleEventStatus::Succeeded } else { LifecycleEventStatus::Failed };
        let put = self.0.put_lifecycle_event_hook_execution_status().deployment_id(&event.deployment_id);
        let put = put.lifecycle_event_hook_execution_id(&event.lifecycle_event_hook_execution_id).status(status);
        let Err(error) = put.send().await else { return Ok(()) };
        let is_reported = PutLifecycleEventHookExecutionStatusError::is_lifecycle_event_already_completed_exception;
        if error.as_service_error().is_some_and(is_reported) { Ok(()) } else { Err(explain(&error).into()) }
    }
}

fn direction(deployment: &DeploymentInfo) -> Direction {
    use DeploymentCreator::{CloudFormationRollback, CodeDeployRollback};
    use DeploymentStatus::{Failed, Stopped, Succeeded};

    if matches!(deployment.status(), Some(Succeeded | Failed | Stopped)) {
        Direction::Over
    } else if matches!(deployment.creator(), Some(CloudFormationRollback | CodeDeployRollback)) {
        Direction::Back
    } else {
        Direction::Forward
    }
}
