//! Looks up the addresses of host names.

use std::io;
use std::net::IpAddr;

use futures_util::future::BoxFuture;

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
