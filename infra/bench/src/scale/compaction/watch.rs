//! Watches the calls of a rebuild.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::query::QueryInput;

/// More rows than are in a page of 1 MB. Without a limit, the embedded DynamoDB reads the rest of the partition for
/// every page. DynamoDB does not.
const MAX_PAGE_ROWS: i32 = 15_000;

/// Counts the objects that clients put, repeated attempts included, and limits the rows of their queries.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Puts>);

#[derive(Debug, Default)]
struct Puts {
    objects: AtomicU64,
    bytes: AtomicU64,
}

impl Watch {
    /// Returns how many objects were put, and their bytes.
    pub(super) fn puts(&self) -> (u64, u64) {
        (self.0.objects.load(Ordering::Relaxed), self.0.bytes.load(Ordering::Relaxed))
    }
}

impl Intercept for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(query) = context.input_mut().downcast_mut::<QueryInput>() {
            query.limit = query.limit.or(Some(MAX_PAGE_ROWS));
        }
        Ok(())
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        if request.method() == "PUT" {
            let bytes = request.headers().get("content-length").and_then(|bytes| bytes.parse::<u64>().ok());
            self.0.objects.fetch_add(1, Ordering::Relaxed);
            self.0.bytes.fetch_add(bytes.unwrap_or_default(), Ordering::Relaxed);
        }
        Ok(())
    }
}
