//! The headers that say what the page may do (Content Security Policy Level 3).
//!
//! The policy allows the page's own script and style by their hashes. A nonce would protect nothing here: the page is
//! public and cached for five minutes, so everybody could read the nonce and use it while it is valid. A hash allows
//! exactly one text, wherever the page comes from: this function, the edge's cache or a browser's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};

use super::assets::{SCRIPT, STYLE};

/// Returns the headers of the page.
pub(crate) fn headers() -> HeaderMap {
    let fixed = |name: HeaderName, value| (name, HeaderValue::from_static(value));
    let mut headers =
        HeaderMap::from_iter([fixed(X_CONTENT_TYPE_OPTIONS, "nosniff"), fixed(REFERRER_POLICY, "no-referrer")]);
    if let Ok(policy) = HeaderValue::from_str(&policy()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers
}

/// The page connects only to the service that serves it. Its icon is in the page itself (`data:`).
fn policy() -> String {
    let (script, style) = (hash(SCRIPT), hash(STYLE));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
