//! What can be wrong with a resource. Functions that cannot start and the operator's `marketctl check` describe it in
//! the same words.

use std::error::Error;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use thiserror::Error;

use crate::closed_enum;

use crate::store::explain;

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
    pub(super) const fn may_settle(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// Returns whether somebody has to change something before the resource can be used.
    pub(super) const fn lasts(&self) -> bool {
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
