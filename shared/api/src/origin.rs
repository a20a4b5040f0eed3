//! Refuses requests that did not come through the deployment's edge. The edge sends a secret in a header of its own, so
//! whoever calls the gateway's host name directly does not get past this check. Without an edge there is no secret, and
//! nothing is checked. Where requests came from is also where clients find the API.

use common::runtime::Service;
use http::header::HOST;
use sha2::{Digest, Sha256};

use super::error::ApiError;
use super::gateway::Request;
use super::reply::FORWARDED_PROTO;

/// The header in which the edge sends its secret.
pub const ORIGIN_HEADER: &str = "x-origin-secret";
/// The environment variable with the accepted secrets, separated by blanks. There are two of them while the secret is
/// rotated. If the variable is missing or empty, nothing is checked.
pub const ORIGIN_VARIABLE: &str = "ORIGIN_SECRETS";

/// The header in which the edge names the host that clients use. Whoever calls a gateway without an edge could send any.
pub const PUBLIC_HOST_HEADER: &str = "x-public-host";

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

    /// Returns the scheme and the host under which the client reached the API. An edge that has no name of its own does
    /// not tell. The host that the gateway was called by is not told then: the edge alone may know it.
    pub fn base_url(&self, request: &Request) -> Option<String> {
        let header = |name: &str| request.headers().get(name)?.to_str().ok();
        let (scheme, host) = match self.accepted {
            Some(_) => ("https", header(PUBLIC_HOST_HEADER)?),
            None if header(FORWARDED_PROTO.as_str()) == Some("https") => ("https", header(HOST.as_str())?),
            None => ("http", header(HOST.as_str())?),
        };
        let is_host = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
        is_host.then(|| format!("{scheme}://{host}"))
    }
}

/// Secrets are compared by their hashes. How long a comparison takes tells something about two hashes, and so nothing
/// about the secrets.
fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

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

    #[test]
    fn the_base_url_is_the_host_that_was_asked_and_with_an_edge_the_one_that_it_names() {
        let asked = ("host", "h.example");
        let https = ("x-forwarded-proto", "https");
        for (secrets, headers, expected) in [
            ("", &[asked, https][..], Some("https://h.example")),
            ("", &[("host", "127.0.0.1:8080")], Some("http://127.0.0.1:8080")),
            ("", &[("host", "[::1]:8080")], Some("http://[::1]:8080")),
            ("", &[asked, https, (PUBLIC_HOST_HEADER, "evil.example")], Some("https://h.example")),
            ("", &[("host", "h\"onload")], None),
            ("", &[], None),
            ("one", &[asked, https], None),
            ("one", &[asked, (PUBLIC_HOST_HEADER, "api.example")], Some("https://api.example")),
        ] {
            let mut request = Request::default();
            request.headers_mut().extend(
                headers.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())),
            );
            assert_eq!(Origin::accepting(secrets).base_url(&request).as_deref(), expected, "{secrets:?}, {headers:?}");
        }
    }
}
