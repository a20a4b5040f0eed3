//! The deployed stack that the environment names, if it names one.

use platform::resources::Resources;

/// The variable with the base URL of the deployed stack. The usual variables of AWS tools say where its AWS side is.
const BASE_URL_VARIABLE: &str = "MARKETPLACE_BASE_URL";
/// The variable with the name of the deployed stack, if it is not the default one.
const STACK_VARIABLE: &str = "MARKETPLACE_STACK";

/// Returns the base URL of the deployed stack. Without one, each test has a stack in its process.
pub(crate) fn base_url() -> Option<String> {
    std::env::var(BASE_URL_VARIABLE).ok()
}

/// Returns the name of the stack that the tests of `tests/it/anywhere` run against.
pub fn stack_name() -> String {
    std::env::var(STACK_VARIABLE).unwrap_or_else(|_| Resources::DEFAULT_STACK.to_owned())
}
