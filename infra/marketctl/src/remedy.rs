//! What to do about a resource that cannot be used.

use platform::preflight::{Problem, ResourceKind};

/// Returns a whole sentence: which resource, what is wrong with it, what to do next.
pub(crate) fn with_remedy(problem: &Problem, kind: ResourceKind, name: &str) -> String {
    let next = match (problem, kind) {
        (Problem::Missing, _) => {
            "deploy the stack, or select the right stack with --stack and its region with AWS_REGION"
        }
        (Problem::NotActive(_), ResourceKind::Secret) => {
            "restore it (`aws secretsmanager restore-secret`); without it no webhook delivery can be signed"
        }
        (Problem::NotActive(_), _) => "wait until it is active, then check again",
        (Problem::NoIndex(_), _) => {
            "deploy the stack again; without the index, webhook deliveries cannot be listed or retried"
        }
        (Problem::Content(_), _) => {
            "restore the secret's previous version; without a keyring no webhook delivery can be signed"
        }
        (Problem::Denied(_), ResourceKind::Table) => "allow dynamodb:DescribeTable, or use another profile",
        (Problem::Denied(_), ResourceKind::Queue) => {
            "allow sqs:GetQueueUrl and sqs:GetQueueAttributes, or use another profile"
        }
        (Problem::Denied(_), ResourceKind::Secret) => {
            "allow secretsmanager:DescribeSecret and secretsmanager:GetSecretValue, or use another profile"
        }
        (Problem::Denied(_), ResourceKind::Bucket) => "allow s3:GetObject and s3:ListBucket, or use another profile",
        (Problem::Refused(_), _) => "check the credentials and AWS_REGION",
        (Problem::Unreachable(_), _) => "check the network, AWS_REGION and AWS_ENDPOINT_URL",
    };
    format!("{}: {next}", problem.sentence(kind, name))
}
