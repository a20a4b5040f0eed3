//! The names that resources have in policies. Region and account are those of every AWS side of one's own.

/// A table's.
pub fn table(name: &str) -> String {
    format!("arn:aws:dynamodb:us-east-1:000000000000:table/{name}")
}

/// A queue's.
pub fn queue(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:000000000000:{name}")
}

/// A secret's, without the six characters that Secrets Manager adds to it.
pub fn secret(name: &str) -> String {
    format!("arn:aws:secretsmanager:us-east-1:000000000000:secret:{name}")
}
