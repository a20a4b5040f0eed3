//! The names of the default stack's functions, and what calls are answered with.

use percent_encoding::percent_decode_str;
use platform::resources::{ALIAS, Resources};
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

/// Returns the ARN of a function's alias, which is what triggers call.
pub(super) fn alias_arn(function: &str) -> String {
    format!("{}:{ALIAS}", function_arn(function))
}

/// Returns a function's name without that of the stack. It may be named by its name or its ARN, percent-encoded, with or
/// without its alias or a version. `None` if the default stack has no such function or alias.
pub(super) fn function(named: &str) -> Option<String> {
    let named = percent_decode_str(named).decode_utf8_lossy();
    let named = named.strip_prefix(&function_arn("")).or_else(|| named.strip_prefix(&deployed("")))?;
    let (function, qualifier) = named.split_once(':').unwrap_or((named, ALIAS));
    is_known(qualifier).then(|| function.to_owned())
}

/// Returns whether a function has this alias or may have this version.
pub(super) fn is_known(qualifier: &str) -> bool {
    qualifier == ALIAS || qualifier.parse::<u32>().is_ok_and(|version| version > 0)
}

pub(super) fn not_found(what: &str) -> Refused {
    ("ResourceNotFoundException", format!("There is no {what}."))
}
