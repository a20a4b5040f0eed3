//! Refuses requests that did not come through the deployment's edge. The edge sends a secret in a header of its own, so
//! whoever calls the gateway's host name directly does not get past this check. Without an edge there is no secret, and
//! nothing is checked.

use common::runtime::Service;
use sha2::{Digest, Sha256};

use super::error::ApiError;
use super::gateway::Request;

/// The header in which the edge sends its secret.
pub const ORIGIN_HEADER: &str = "x-origin-secret";
/// The environment variable with the accepted secrets, separated by blanks. There are two of them while the secret is
/// rotated. If the variable is missing or empty, nothing is checked.
pub const ORIGIN_VARIABLE: &str = "ORIGIN_SECRETS";

/// Where requests may come from.
#[derive(Clone, Default)]
pub struct Origin {
    /// The hashes of the accepted secrets, or `None` if requests may come from anywhere.
    accepted: Option<Vec<[u8; 32]>>,
}

impl Origin {
    /// Reads the accepted secrets from the function's environment.
    pub fn from_service(service: &Service<'_>) -> Self {
        Self::accepting(service.lambda_variable(ORIGIN_VARIABLE).as_deref().unwrap_or_default())
    }

    /// Accepts requests with any of these secrets, or all requests if the text is empty. A text of blanks alone accepts
    /// none: it is a mistake, and must not open what is meant to be closed.
    fn accepting(secrets: &str) -> Self {
        let hashes = || secrets.split_ascii_whitespace().map(|secret| hash(secret.as_bytes())).collect();
        Self { accepted: (!secrets.is_empty()).then(hashes) }
    }

    /// Refuses a request without an accepted secret.
    pub fn check(&self, request: &Request) -> Result<(), ApiError> {
        let Some(accepted) = &self.accepted else { return Ok(()) };
        let sent = request.headers().get(ORIGIN_HEADER).map(|value| hash(value.as_bytes()));
        if sent.is_some_and(|sent| accepted.contains(&sent)) { Ok(()) } else { Err(ApiError::HostNotAllowed) }
    }
}

/// Secrets are compared by their hashes. How long a comparison takes tells something about two hashes, and so nothing
/// about the secrets.
fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(secrets: &str, sent: Option<&str>) -> bool {
        let mut request = Request::default();
        if let Some(sent) = sent {
            request.headers_mut().insert(ORIGIN_HEADER, sent.parse().unwrap());
        }
        Origin::accepting(secrets).check(&request).is_ok()
    }

    #[test]
    fn a_request_is_accepted_with_one_of_the_secrets_or_if_there_is_none() {
        for (secrets, sent, expected) in [
            ("", None, true),
            ("", Some("anything"), true),
            ("one", Some("one"), true),
            ("one", None, false),
            ("one", Some(""), false),
            ("one", Some("on"), false),
            ("one", Some("one two"), false),
            ("one", Some("ONE"), false),
            ("one two", Some("one"), true),
            ("one two", Some("two"), true),
            ("one two", Some("three"), false),
            (" ", None, false),
            (" ", Some(""), false),
            (" ", Some(" "), false),
        ] {
            assert_eq!(is_accepted(secrets, sent), expected, "{secrets:?}, {sent:?}");
        }
    }
}
