//! Invokes versions of functions.

use std::time::Duration;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Builder;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::operation::invoke::InvokeOutput;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use common::aws::{Environment, Patience};
use common::runtime::Error;
use common::store::explain;
use serde_json::Value;

use crate::deployment::HookEvent;
use crate::trial::Trial;

/// The longest time for connecting to Lambda.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time for an answer. A version that starts may load a base, and Lambda starts one that failed a second
/// time.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A client of Lambda. The caller repeats what fails.
pub(crate) struct Invoker(Client);

/// How a try of a version went.
pub(crate) enum Attempt {
    Passed,
    /// It ended in init, failed, or gave another answer than it should have.
    Failed(String),
    /// It cannot be invoked yet.
    NotNow(String),
    /// The account has no concurrency left.
    Throttled,
}

impl Invoker {
    pub(crate) fn new(environment: &Environment) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ANSWER_TIMEOUT)
            .operation_timeout(ANSWER_TIMEOUT);
        let mut config = Builder::from(&environment.config(Patience::Bulk));
        config.set_timeout_config(Some(timeouts.build()));
        config.set_retry_config(Some(RetryConfig::disabled()));
        config.set_interceptors(environment.interceptors());
        Self(Client::from_conf(config.build()))
    }

    /// Tries a version, which is named by its ARN.
    pub(crate) async fn invoke(&self, version: &str, trial: &Trial) -> Attempt {
        let payload = Blob::new(trial.event.to_string());
        match self.0.invoke().function_name(version).payload(payload).send().await {
            Ok(output) => judge(output, trial),
            Err(error) => match error.code() {
                Some("TooManyRequestsException") => Attempt::Throttled,
                Some("AccessDeniedException" | "ResourceNotFoundException") => Attempt::Failed(explain(&error)),
                _ => Attempt::NotNow(explain(&error)),
            },
        }
    }

    /// Has Lambda invoke a function with an event as soon as it can. It queues the event for hours if it has to.
    pub(crate) async fn invoke_later(&self, function: &str, event: &HookEvent) -> Result<(), Error> {
        let invoke = self.0.invoke().function_name(function).invocation_type(InvocationType::Event);
        let payload = Blob::new(serde_json::to_vec(event)?);
        invoke.payload(payload).send().await.map(drop).map_err(|error| explain(&error).into())
    }
}

fn judge(output: InvokeOutput, trial: &Trial) -> Attempt {
    let answer = output.payload.map(Blob::into_inner).unwrap_or_default();
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    match output.function_error {
        None if trial.is_passed_by(&answer) => Attempt::Passed,
        None => Attempt::Failed(format!("gave an answer that it should not: {answer}")),
        Some(_) => Attempt::Failed(format!("failed: {answer}")),
    }
}
