//! Counts what a DynamoDB client reads.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};

/// Reads that were answered.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    pub queries: usize,
    /// Read units of all calls. One is a strongly consistent read of 4 KB.
    pub units: f64,
}

/// Counts the reads of the clients that it is attached to.
#[derive(Clone, Debug, Default)]
pub struct ReadMeter(Arc<Mutex<Reads>>);

impl ReadMeter {
    /// Returns the client with its reads counted.
    pub fn attach(&self, client: &Client) -> Client {
        Client::from_conf(client.config().to_builder().interceptor(self.clone()).build())
    }

    /// Returns what was read since the last time this was asked.
    pub fn take(&self) -> Reads {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self, queries: usize, consumed: Option<&ConsumedCapacity>) {
        let mut reads = self.0.lock().unwrap();
        reads.queries += queries;
        reads.units += consumed.and_then(ConsumedCapacity::capacity_units).unwrap();
    }
}

impl Intercept for ReadMeter {
    fn name(&self) -> &'static str {
        "read meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input_mut();
        if let Some(query) = input.downcast_mut::<QueryInput>() {
            query.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
        } else if let Some(get) = input.downcast_mut::<GetItemInput>() {
            get.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
        }
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Ok(output)) = context.output_or_error() else { return Ok(()) };
        if let Some(query) = output.downcast_ref::<QueryOutput>() {
            self.count(1, query.consumed_capacity());
        } else if let Some(get) = output.downcast_ref::<GetItemOutput>() {
            self.count(0, get.consumed_capacity());
        }
        Ok(())
    }
}
