//! What can be wrong with a resource, and what to do about it.

use std::error::Error;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use shared::store::explain;
use shared::webhooks::KeyringError;
use thiserror::Error;

use super::Kind;

/// Why a resource cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Problem {
    #[error("does not exist")]
    Missing,
    /// It is there, but being made, changed or deleted.
    #[error("is {0}")]
    NotActive(String),
    #[error("lacks its index {0}")]
    NoIndex(&'static str),
    /// The secret holds something else. Nothing of it is repeated.
    #[error("holds no keyring ({0})")]
    NoKeyring(#[from] KeyringError),
    #[error("may not be looked at with these credentials")]
    Denied,
    #[error("could not be looked at ({0})")]
    Refused(String),
    #[error("cannot be reached ({0})")]
    Unreachable(String),
}

impl Problem {
    /// The whole sentence: which resource, what is wrong, what to do next.
    pub(crate) fn of(&self, kind: Kind, name: &str) -> String {
        let next = match (self, kind) {
            (Self::Missing, _) => "deploy the stack, or name the right one with --stack and its region with AWS_REGION",
            (Self::NotActive(_), Kind::Secret) => "restore it: without it no webhook secret can be opened",
            (Self::NotActive(_), _) => "wait until it is active, then check again",
            (Self::NoIndex(_), _) => {
                "deploy the stack again: without it webhook deliveries are neither listed nor retried"
            }
            (Self::NoKeyring(_), _) => "put its previous version back: without it no webhook secret can be opened",
            (Self::Denied, Kind::Table) => "allow dynamodb:DescribeTable, or use another profile",
            (Self::Denied, Kind::Queue) => "allow sqs:GetQueueUrl and sqs:GetQueueAttributes, or use another profile",
            (Self::Denied, Kind::Secret) => {
                "allow secretsmanager:DescribeSecret and secretsmanager:GetSecretValue, or use another profile"
            }
            (Self::Refused(_), _) => "look at the credentials and AWS_REGION",
            (Self::Unreachable(_), _) => "look at the network, AWS_REGION and AWS_ENDPOINT_URL",
        };
        format!("{} {name} {self}: {next}", kind.as_str())
    }
}

impl<E> From<SdkError<E, HttpResponse>> for Problem
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        match error.code() {
            Some("ResourceNotFoundException" | "QueueDoesNotExist" | "AWS.SimpleQueueService.NonExistentQueue") => {
                Self::Missing
            }
            Some("AccessDeniedException" | "AccessDenied") => Self::Denied,
            Some(_) => Self::Refused(explain(&error)),
            None => Self::Unreachable(explain(&error)),
        }
    }
}
