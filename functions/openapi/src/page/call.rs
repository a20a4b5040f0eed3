//! The call that an operation's samples make: its examples for all path parameters and the first query parameter.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};

use super::parameters::sample;

/// What is encoded in a URL: all but the unreserved characters (RFC 3986, section 2.3). Those mean nothing within the
/// quotes of a shell or of a programming language.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) struct Call {
    /// The path with its query.
    pub(super) target: String,
    pub(super) needs_key: bool,
}

impl Call {
    pub(super) fn new(path: &str, operation: &Operation, parameters: &[&Parameter]) -> Self {
        let within = |place: ParameterIn| parameters.iter().filter(move |parameter| parameter.parameter_in == place);
        let encoded = |parameter: &Parameter| utf8_percent_encode(&sample(parameter), ENCODED).to_string();
        let mut target = path.to_owned();
        for parameter in within(ParameterIn::Path) {
            target = target.replace(&format!("{{{}}}", parameter.name), &encoded(parameter));
        }
        if let Some(parameter) = within(ParameterIn::Query).next() {
            target = format!("{target}?{}={}", parameter.name, encoded(parameter));
        }
        let needs_key = operation.security.as_ref().is_some_and(|security| !security.is_empty());
        Self { target, needs_key }
    }
}
