//! What clients tell AWS about themselves.
//!
//! For each call the SDK makes a random id, numbers the attempt, and puts the same user agent together from its parts
//! twice, once for a header that it then signs. AWS only counts these. The user agent of a client's first call is kept
//! here and sent with every call; the rest is sent once.

use std::sync::OnceLock;

use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::user_agent::UserAgentInterceptor;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, FrozenLayer, Intercept, Layer, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::interceptors::disable_interceptor;

const USER_AGENT: &str = "user-agent";
const REASON: &str = "the user agent of the first call is sent";

/// Sends the user agent of a client's first call with its later calls, and leaves out the other headers about the
/// client. A user agent names the service, so each client needs its own interceptor.
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
