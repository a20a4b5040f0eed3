//! An endpoint's URL (specification 6.12.2). Deliveries connect to the result of the same parser that checked the URL,
//! so no second parser can understand it differently.

use std::cell::Cell;
use std::fmt;
use std::net::IpAddr;

use http::Uri;
use thiserror::Error;
use url::{Host, SyntaxViolation, Url};

use super::policy::Policy;

/// The length limit of a URL, in characters: as the owner wrote it, and as the parser spells it. Percent-encoding can
/// make a URL twelve times as long.
const MAX_URL_CHARS: usize = 2_048;
/// The longest host name and the longest label in it, in bytes (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// Top-level names that mean something else in every network.
const LOCAL_DOMAINS: [&str; 3] = ["localhost", "local", "internal"];

/// The URL of a webhook endpoint. It may be called if the addresses of its host name pass [`super::check_resolved`].
///
/// Its text is in the spelling of the parser. So each host has one spelling, and the URL that is shown is the URL
/// that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl {
    text: String,
    uri: Uri,
}

/// The rule that a URL breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UrlRefusal {
    #[error("must have at most 2,048 characters, as written and after percent-encoding")]
    TooLong,
    /// A character cannot be seen, or the parser would drop it.
    #[error("must not contain white space or control characters")]
    Character,
    /// It is not an absolute URL, or its host is neither a name nor an address.
    #[error("must be an absolute URL")]
    Malformed,
    #[error("must be http or https")]
    Scheme,
    /// It has a user name or password. Credentials do not belong in a text that is stored and listed, and they can
    /// disguise the host.
    #[error("must have no user name and no password")]
    UserInfo,
    /// It has a fragment. That is never sent, so an owner who writes one expects something that does not happen.
    #[error("must have no fragment")]
    Fragment,
    /// The host is an IP address, in any spelling, that is not public.
    #[error("must use a public IP address")]
    Address,
    /// The host is not a valid DNS name.
    #[error("must have a host name of letters, digits, hyphens and underscores")]
    Name,
    /// The host name has a meaning only inside a network.
    #[error("must have a public host name: with a dot, and not under localhost, local or internal")]
    LocalName,
    /// The port is below 1024 and neither 80 nor 443, so it belongs to another service.
    #[error("must use port 80, 443, or one from 1024 up")]
    Port,
}

impl EndpointUrl {
    /// Parses and checks a URL that an owner wrote or that was stored.
    pub fn parse(raw: &str, policy: Policy) -> Result<Self, UrlRefusal> {
        check_text(raw)?;
        let url = parse_without_user_info(raw)?;
        if url.fragment().is_some() {
            return Err(UrlRefusal::Fragment);
        }
        check_target(&url, policy)?;
        let text = String::from(url);
        check_length(&text)?;
        let uri = text.parse().map_err(|_| UrlRefusal::Malformed)?;
        Ok(Self { text, uri })
    }

    /// Returns the URL as it is called.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URL in the HTTP client's type.
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// Returns whether two URLs lead to the same host: the same name or address, and the same port.
pub fn is_same_host(one: &str, other: &str) -> bool {
    let host = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some((url.host()?.to_owned(), url.port_or_known_default()?))
    };
    host(one).is_some_and(|found| host(other) == Some(found))
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn check_length(text: &str) -> Result<(), UrlRefusal> {
    if text.chars().nth(MAX_URL_CHARS).is_some() { Err(UrlRefusal::TooLong) } else { Ok(()) }
}

/// Checks the text before it is parsed, so that no long text is parsed.
fn check_text(raw: &str) -> Result<(), UrlRefusal> {
    check_length(raw)?;
    if raw.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(UrlRefusal::Character);
    }
    Ok(())
}

/// Parses a URL without user name and password. The parser drops an empty user name (`http://@host/`) from its
/// result, but reports it as a violation.
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

/// Returns whether the address is allowed because the policy opens loopback.
fn check_address(address: IpAddr, policy: Policy) -> Result<bool, UrlRefusal> {
    if policy.allows(address) { Ok(policy.opens(address)) } else { Err(UrlRefusal::Address) }
}

/// Returns whether the name is allowed because the policy opens loopback. The parser has made it lower-case ASCII.
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
