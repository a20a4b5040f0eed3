//! An endpoint's URL, read by the parser whose result is connected to.

use std::cell::Cell;
use std::fmt;
use std::net::IpAddr;

use http::Uri;
use thiserror::Error;
use url::{Host, SyntaxViolation, Url};

use super::policy::Policy;

/// The longest URL, in characters as written.
pub const MAX_URL_CHARS: usize = 2_048;
/// The longest host name and the longest of its labels (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// Names that every network gives a meaning of its own.
const LOCAL_DOMAINS: [&str; 3] = ["localhost", "local", "internal"];

/// The URL of a webhook endpoint, fit to be called if its host name's addresses are.
///
/// It is the text as the parser reads it: one spelling for each host, what is shown is what is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl {
    text: String,
    uri: Uri,
}

/// The rule that a URL breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UrlRefusal {
    /// It is longer than [`MAX_URL_CHARS`].
    #[error("must have at most 2,048 characters")]
    TooLong,
    /// Some of it would not be seen, or be dropped by the parser.
    #[error("must have no white space and no control characters")]
    Character,
    /// It is no absolute URL, or its host no name and no address.
    #[error("must be an absolute URL")]
    Malformed,
    /// Neither http nor https.
    #[error("must be http or https")]
    Scheme,
    /// Credentials do not belong in a text that is stored and listed; they also serve to disguise the host.
    #[error("must have no user name and no password")]
    UserInfo,
    /// A fragment is never sent: whoever writes one expects what does not happen.
    #[error("must have no fragment")]
    Fragment,
    /// The host is an IP address, in whatever spelling, that is not public.
    #[error("must not name an address that is not public")]
    Address,
    /// The host is no name that the DNS can hold.
    #[error("must have a host name of letters, digits, hyphens and underscores")]
    Name,
    /// The host name only means something inside a network.
    #[error("must have a public host name: one with a dot, not under localhost, local or internal")]
    LocalName,
    /// Ports below 1024 are other services'.
    #[error("must use port 80, 443, or one from 1024 up")]
    Port,
}

impl EndpointUrl {
    /// The URL in an owner's or a stored text.
    pub fn parse(raw: &str, policy: Policy) -> Result<Self, UrlRefusal> {
        check_text(raw)?;
        let url = parse_without_user_info(raw)?;
        if url.fragment().is_some() {
            return Err(UrlRefusal::Fragment);
        }
        check_target(&url, policy)?;
        let text = String::from(url);
        let uri = text.parse().map_err(|_| UrlRefusal::Malformed)?;
        Ok(Self { text, uri })
    }

    /// The URL as it is called.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL as the HTTP client takes it.
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn check_text(raw: &str) -> Result<(), UrlRefusal> {
    if raw.chars().nth(MAX_URL_CHARS).is_some() {
        return Err(UrlRefusal::TooLong);
    }
    if raw.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(UrlRefusal::Character);
    }
    Ok(())
}

/// The parser drops an empty user name (`http://@host/`) without a trace in its result, but not silently.
fn parse_without_user_info(raw: &str) -> Result<Url, UrlRefusal> {
    let user_info = Cell::new(false);
    let note = |violation| {
        if matches!(violation, SyntaxViolation::EmbeddedCredentials) {
            user_info.set(true);
        }
    };
    let url = Url::options().syntax_violation_callback(Some(&note)).parse(raw).map_err(|_| UrlRefusal::Malformed)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlRefusal::Scheme);
    }
    if user_info.get() {
        return Err(UrlRefusal::UserInfo);
    }
    Ok(url)
}

fn check_target(url: &Url, policy: Policy) -> Result<(), UrlRefusal> {
    let opened = match url.host().ok_or(UrlRefusal::Malformed)? {
        Host::Ipv4(address) => check_address(address.into(), policy)?,
        Host::Ipv6(address) => check_address(address.into(), policy)?,
        Host::Domain(name) => check_name(name.strip_suffix('.').unwrap_or(name), policy)?,
    };
    match url.port_or_known_default() {
        Some(80 | 443 | 1_024..) => Ok(()),
        _ if opened => Ok(()),
        _ => Err(UrlRefusal::Port),
    }
}

/// Whether the policy opens the address as a loopback one.
fn check_address(address: IpAddr, policy: Policy) -> Result<bool, UrlRefusal> {
    if policy.allows(address) { Ok(policy.opens(address)) } else { Err(UrlRefusal::Address) }
}

/// Whether the policy opens the name, which the parser has brought to lower-case ASCII, as the loopback one.
fn check_name(name: &str, policy: Policy) -> Result<bool, UrlRefusal> {
    if policy.opens_name(name) {
        return Ok(true);
    }
    if name.len() > MAX_NAME || !name.split('.').all(is_label) {
        return Err(UrlRefusal::Name);
    }
    match name.rsplit_once('.') {
        Some((_, top)) if !LOCAL_DOMAINS.contains(&top) => Ok(false),
        _ => Err(UrlRefusal::LocalName),
    }
}

fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
