//! The quota of retries that AWS clients have. The SDK keeps one in a process, for all clients of a service. Instances
//! that are simulated in one process must not share it, because each would use up the retries of the others.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextMut;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;

/// Gives the clients that it intercepts a quota of their own.
#[derive(Debug)]
pub(super) struct RetryQuota(RetryPartition);

impl RetryQuota {
    /// Makes a full quota.
    pub(super) fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self(RetryPartition::new(format!("instance {}", MADE.fetch_add(1, Ordering::Relaxed))))
    }
}

impl Intercept for RetryQuota {
    fn name(&self) -> &'static str {
        "retry quota"
    }

    fn modify_before_serialization(
        &self,
        _: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(self.0.clone());
        Ok(())
    }
}
