//! Which addresses a stack delivers to, how host names are looked up, and the check of their addresses (specification
//! 6.12.3).

use std::io;
use std::net::IpAddr;

use futures_util::future::BoxFuture;
use thiserror::Error;

use super::public::is_public;

/// The environment variable that tells `marketctl`, if it is `1`, to register endpoints under
/// [`Policy::with_loopback`]. No function reads it.
pub const LOOPBACK_VARIABLE: &str = "WEBHOOK_ALLOW_LOOPBACK";

/// Which addresses a stack delivers to: public ones and, on a developer's machine, that machine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    loopback: bool,
}

/// Why the addresses of a host name are refused. The text is the same for each reason, because it is shown to owners, and
/// they must not learn what our resolver sees (specification 6.12.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddressRefusal {
    /// There is no address.
    #[error("{NOT_PUBLIC}")]
    None,
    /// At least one of the addresses is not public.
    #[error("{NOT_PUBLIC}")]
    NotPublic,
}

/// What owners read about a host name that does not resolve, and about one with an address that is not public.
pub const NOT_PUBLIC: &str = "the host name does not resolve to public addresses";

impl Policy {
    /// Allows public addresses only. Deployments use this policy.
    pub const fn public() -> Self {
        Self { loopback: false }
    }

    /// Also allows 127.0.0.0/8, `::1` and the name `localhost`, on any port. For development and tests.
    pub const fn with_loopback() -> Self {
        Self { loopback: true }
    }

    /// Returns whether an address may be connected to.
    pub(super) fn allows(self, address: IpAddr) -> bool {
        is_public(address) || self.opens(address)
    }

    /// Returns whether an address is allowed because it is a loopback address.
    pub(super) const fn opens(self, address: IpAddr) -> bool {
        self.loopback && address.is_loopback()
    }

    /// Returns whether a name is allowed because it is `localhost`. It must be in lower case, without a trailing dot.
    pub(super) fn opens_name(self, name: &str) -> bool {
        self.loopback && name == "localhost"
    }
}

/// Returns the resolved addresses of a host name if there is at least one and *every* one may be connected to. A name
/// that mixes public with other addresses was set up to get past a check of the first address only.
pub fn check_resolved(addresses: &[IpAddr], policy: Policy) -> Result<&[IpAddr], AddressRefusal> {
    if addresses.is_empty() {
        return Err(AddressRefusal::None);
    }
    if !addresses.iter().all(|address| policy.allows(*address)) {
        return Err(AddressRefusal::NotPublic);
    }
    Ok(addresses)
}

/// Looks up the addresses of host names. It need not be trusted, because its answers are checked.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of a name, in the order in which to try them.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(addresses: &[&str], policy: Policy) -> Result<usize, AddressRefusal> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let accepted = check_resolved(&addresses, policy)?;
        assert_eq!(accepted, addresses);
        Ok(accepted.len())
    }

    #[test]
    fn one_address_that_is_not_public_spoils_the_rest() {
        let policy = Policy::public();
        assert_eq!(checked(&["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"], policy), Ok(2));
        assert_eq!(checked(&[], policy), Err(AddressRefusal::None));
        for spoilt in [
            &["127.0.0.1"][..],
            &["93.184.215.14", "10.0.0.1"],
            &["10.0.0.1", "93.184.215.14"],
            &["93.184.215.14", "::1", "93.184.215.15"],
            &["93.184.215.14", "::ffff:93.184.215.14"],
        ] {
            assert_eq!(checked(spoilt, policy), Err(AddressRefusal::NotPublic), "{spoilt:?}");
        }
    }

    #[test]
    fn the_policy_of_development_opens_loopback_and_nothing_else() {
        let policy = Policy::with_loopback();
        assert_eq!(checked(&["127.0.0.1", "127.255.255.255", "::1", "93.184.215.14"], policy), Ok(4));
        for closed in ["0.0.0.0", "10.0.0.1", "169.254.169.254", "::", "::ffff:127.0.0.1", "::127.0.0.1", "fe80::1"] {
            let both = ["127.0.0.1", closed];
            assert_eq!(checked(&both, policy), Err(AddressRefusal::NotPublic), "{closed}");
        }
        assert_eq!(checked(&[], policy), Err(AddressRefusal::None));
    }
}
