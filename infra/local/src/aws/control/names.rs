//! The names of the default stack's functions, and what calls are answered with.

use platform::resources::Resources;
use serde_json::Value;

use crate::environment::{ACCOUNT_ID, REGION};

/// The name of an error, and its message.
pub(super) type Refused = (&'static str, String);
pub(super) type Answered = Result<Value, Refused>;

/// Returns the name of a deployed function.
pub(super) fn deployed(function: &str) -> String {
    Resources::new(Resources::DEFAULT_STACK).function(function)
}

pub(super) fn function_arn(function: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{}", deployed(function))
}

pub(super) fn not_found(what: &str) -> Refused {
    ("ResourceNotFoundException", format!("There is no {what}."))
}
