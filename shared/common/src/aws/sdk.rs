//! What the SDK does anew for each call, done once: it works out the endpoint, puts the user agent together, and renews
//! credentials that never change.

use std::sync::OnceLock;

use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::user_agent::UserAgentInterceptor;
use aws_sdk_dynamodb::config::endpoint::{DefaultResolver, Endpoint, EndpointFuture, Params, ResolveEndpoint};
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, FrozenLayer, Intercept, Layer, ResolveCachedIdentity, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::identity::{
    Identity, IdentityCachePartition, IdentityFuture, ResolveIdentity, SharedIdentityResolver,
};
use aws_smithy_runtime_api::client::interceptors::disable_interceptor;

/// The SDK's own rules about where calls go, asked once for all tables that are given by name. Only a table's ARN can
/// change the answer, because it names an account.
///
/// The SDK keeps one answer of its rules, and the names of tables are a part of the question. A client that reads one
/// table while it writes another, as for each request, would have every endpoint worked out anew.
#[derive(Debug, Default)]
pub(super) struct EndpointCache {
    rules: DefaultResolver,
    first: OnceLock<(Params, Endpoint)>,
}

impl ResolveEndpoint for EndpointCache {
    fn resolve_endpoint<'a>(&'a self, params: &'a Params) -> EndpointFuture<'a> {
        if names_arn(params) {
            return ResolveEndpoint::resolve_endpoint(&self.rules, params);
        }
        if let Some((known, endpoint)) = self.first.get()
            && differ_in_tables_only(known, params)
        {
            return EndpointFuture::ready(Ok(endpoint.clone()));
        }
        EndpointFuture::new(async move {
            let endpoint = ResolveEndpoint::resolve_endpoint(&self.rules, params).await?;
            // The first one stays. A client that was made from this one's configuration may go elsewhere.
            let _ = self.first.set((params.clone(), endpoint.clone()));
            Ok(endpoint)
        })
    }
}

fn names_arn(params: &Params) -> bool {
    let tables = params.resource_arn_list().unwrap_or_default().iter().map(String::as_str);
    tables.chain(params.resource_arn()).any(|table| table.starts_with("arn:"))
}

/// Compares everything else that the rules may ask for. A parameter that is missing here would be ignored.
fn differ_in_tables_only(known: &Params, params: &Params) -> bool {
    known.region() == params.region()
        && known.use_dual_stack() == params.use_dual_stack()
        && known.use_fips() == params.use_fips()
        && known.endpoint() == params.endpoint()
        && known.account_id() == params.account_id()
        && known.account_id_endpoint_mode() == params.account_id_endpoint_mode()
        && known.is_search_operation() == params.is_search_operation()
}

const USER_AGENT: &str = "user-agent";
const REASON: &str = "the user agent of the first call is sent";

/// Sends the user agent of a client's first call with its later calls, and leaves out the other headers about the
/// client. A user agent names the service, so each client needs its own interceptor.
///
/// For each call the SDK makes a random id, numbers the attempt, and puts the same user agent together from its parts
/// twice, once for a header that it then signs. AWS only counts these.
#[derive(Debug)]
pub(super) struct LeanHeaders {
    user_agent: OnceLock<String>,
    /// Turns off the interceptors of the SDK that write these headers.
    without_sdk_headers: FrozenLayer,
}

impl Default for LeanHeaders {
    fn default() -> Self {
        let mut without_sdk_headers = Layer::new("lean headers");
        without_sdk_headers.store_put(disable_interceptor::<UserAgentInterceptor>(REASON));
        without_sdk_headers.store_put(disable_interceptor::<InvocationIdInterceptor>(REASON));
        without_sdk_headers.store_put(disable_interceptor::<RequestInfoInterceptor>(REASON));
        Self { user_agent: OnceLock::new(), without_sdk_headers: without_sdk_headers.freeze() }
    }
}

impl Intercept for LeanHeaders {
    fn name(&self) -> &'static str {
        "lean headers"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.user_agent.get().is_some() {
            config.push_shared_layer(self.without_sdk_headers.clone());
        }
        Ok(())
    }

    /// The request is signed already. A signature never covers the user agent.
    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.request_mut().headers_mut();
        if let Some(user_agent) = self.user_agent.get() {
            headers.insert(USER_AGENT, user_agent.clone());
        } else if let Some(user_agent) = headers.get(USER_AGENT) {
            // Of several first calls at the same time, one is kept. They differ in nothing that matters.
            let _ = self.user_agent.set(user_agent.to_owned());
        }
        Ok(())
    }
}

/// Keeps an identity that does not expire. Any other is resolved anew for each call.
///
/// A function's credentials come from its environment and never change. The SDK's cache takes them for lasting a
/// quarter of an hour: for each call it computes how long renewing them may take, starts a timer, and takes two locks.
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
