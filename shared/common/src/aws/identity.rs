//! Whose calls these are.
//!
//! A function's credentials come from its environment and never change. The SDK's cache takes them for lasting a
//! quarter of an hour: for each call it computes how long renewing them may take, starts a timer, and takes two locks.

use std::sync::OnceLock;

use aws_sdk_dynamodb::config::{ConfigBag, ResolveCachedIdentity, RuntimeComponents};
use aws_smithy_runtime_api::client::identity::{
    Identity, IdentityCachePartition, IdentityFuture, ResolveIdentity, SharedIdentityResolver,
};

/// Keeps an identity that does not expire. Any other is resolved anew for each call.
///
/// A client that was made from the configuration of another one shares its cache, but may have other credentials. They
/// are in another partition.
#[derive(Debug, Default)]
pub(super) struct StaticIdentityCache(OnceLock<(IdentityCachePartition, Identity)>);

impl ResolveCachedIdentity for StaticIdentityCache {
    fn resolve_cached_identity<'a>(
        &'a self,
        resolver: SharedIdentityResolver,
        components: &'a RuntimeComponents,
        config: &'a ConfigBag,
    ) -> IdentityFuture<'a> {
        let partition = resolver.cache_partition();
        if let Some((known, identity)) = self.0.get()
            && *known == partition
        {
            return IdentityFuture::ready(Ok(identity.clone()));
        }
        IdentityFuture::new(async move {
            let identity = resolver.resolve_identity(components, config).await?;
            if identity.expiration().is_none() {
                // The first one stays. Another partition's is resolved for each call.
                let _ = self.0.set((partition, identity.clone()));
            }
            Ok(identity)
        })
    }
}
