//! Where the inbox has the secrets from that deliveries are verified with.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use shared::webhooks::EndpointSecret;

/// Knows the secrets of registered endpoints.
pub trait SecretSource: Send + Sync {
    /// The secrets, valid now, of all endpoints whose URL has this path; none if none is known. A delivery waits
    /// for the answer.
    fn of_path<'a>(&'a self, url_path: &'a str) -> BoxFuture<'a, Vec<EndpointSecret>>;
}

/// Knows no secret, so that no signature can be judged.
#[derive(Clone, Copy, Debug)]
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn of_path<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Vec<EndpointSecret>> {
        ready(Vec::new()).boxed()
    }
}
