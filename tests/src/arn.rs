//! ARNs, the names of resources in policies. Region and account are the local AWS side's.

/// The ARN of a table.
pub fn table(name: &str) -> String {
    format!("arn:aws:dynamodb:us-east-1:000000000000:table/{name}")
}

/// The ARN of a queue.
pub fn queue(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:000000000000:{name}")
}

/// The ARN of a bucket. It names neither region nor account.
pub fn bucket(name: &str) -> String {
    format!("arn:aws:s3:::{name}")
}

/// The pattern of a secret's ARN. Secrets Manager appends a hyphen and six characters to the name.
pub fn secret(name: &str) -> String {
    format!("arn:aws:secretsmanager:us-east-1:000000000000:secret:{name}-??????")
}
