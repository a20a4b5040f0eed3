//! ARNs, the names of resources in policies. Region and account are the local AWS side's.

/// The ARN of a table.
pub fn table(name: &str) -> String {
    format!("arn:aws:dynamodb:us-east-1:000000000000:table/{name}")
}

/// The ARN of a queue.
pub fn queue(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:000000000000:{name}")
}

/// The ARN of a function, or of one of its versions or aliases if these stand behind its name.
pub fn function(name: &str) -> String {
    format!("arn:aws:lambda:us-east-1:000000000000:function:{name}")
}

/// The ARN of the deployments of functions.
pub fn deployments() -> String {
    "arn:aws:codedeploy:us-east-1:000000000000:deploymentgroup:ServerlessDeploymentApplication/*".to_owned()
}

/// The ARN of a bucket. It names neither region nor account.
pub fn bucket(name: &str) -> String {
    format!("arn:aws:s3:::{name}")
}

/// The pattern of a secret's ARN. Secrets Manager appends a hyphen and six characters to the name.
pub fn secret(name: &str) -> String {
    format!("arn:aws:secretsmanager:us-east-1:000000000000:secret:{name}-??????")
}
