//! Counts the calls of clients, and the capacity that they consume of DynamoDB.
//!
//! It is the real client with one interceptor, which asks for the consumed capacity in each request and adds up what
//! the answers say.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::transact_write_items::{TransactWriteItemsInput, TransactWriteItemsOutput};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use common::aws::{Environment, Lookup, Missing};
use common::clock::Clock;
use common::runtime::Service;
use serde::{Deserialize, Serialize};

/// What clients have cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// HTTP calls by operation, retries included.
    pub calls: BTreeMap<String, u64>,
    /// Read units. One is a strongly consistent read of 4 KB or an eventually consistent read of 8 KB.
    pub read_units: f64,
    /// Write units. One is a write of 1 KB; in a transaction, 1 KB takes two.
    pub write_units: f64,
}

/// Counts the calls of the clients that are made with it.
#[derive(Clone, Debug, Default)]
pub struct CostMeter {
    bill: Arc<Mutex<Bill>>,
}

impl CostMeter {
    /// Returns what functions are built from. The calls of all their clients are counted.
    pub fn service<'a>(&self, lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Result<Service<'a>, Missing> {
        let environment = Environment::read(lookup)?.watched_by(self.interceptor());
        Ok(Service::with_environment(environment, lookup, clock))
    }

    /// Returns the client with its calls counted.
    pub fn attach(&self, client: &Client) -> Client {
        let mut config = client.config().to_builder();
        config.push_interceptor(self.interceptor());
        Client::from_conf(config.build())
    }

    /// Returns what has been counted since the last call.
    pub fn take(&self) -> Bill {
        std::mem::take(&mut self.bill.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what counts the calls of a client. It cannot be turned off, so that the SDK need not look in each hook of
    /// each call whether somebody has.
    pub fn interceptor(&self) -> SharedInterceptor {
        SharedInterceptor::permanent(self.clone())
    }

    fn count(&self, count: impl FnOnce(&mut Bill)) {
        count(&mut self.bill.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Bill {
    /// Returns the number of calls of all operations.
    pub fn all_calls(&self) -> u64 {
        self.calls.values().sum()
    }
}

impl AddAssign for Bill {
    fn add_assign(&mut self, other: Self) {
        for (operation, calls) in other.calls {
            *self.calls.entry(operation).or_default() += calls;
        }
        self.read_units += other.read_units;
        self.write_units += other.write_units;
    }
}

impl Intercept for CostMeter {
    fn name(&self) -> &'static str {
        "meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input_mut();
        macro_rules! ask {
            ($($input:ty),*) => {$(
                if let Some(input) = input.downcast_mut::<$input>() {
                    input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
                }
            )*};
        }
        ask!(QueryInput, GetItemInput, BatchGetItemInput, PutItemInput, UpdateItemInput, TransactWriteItemsInput);
        Ok(())
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        self.count(|bill| *bill.calls.entry(operation.to_owned()).or_default() += 1);
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Ok(output)) = context.output_or_error() else { return Ok(()) };
        macro_rules! add {
            ($write:expr, $($output:ty),*) => {$(
                if let Some(output) = output.downcast_ref::<$output>() {
                    let consumed = output.consumed_capacity().into_iter();
                    let units: f64 = consumed.filter_map(|consumed| consumed.capacity_units).sum();
                    self.count(|bill| *(if $write { &mut bill.write_units } else { &mut bill.read_units }) += units);
                }
            )*};
        }
        add!(false, QueryOutput, GetItemOutput, BatchGetItemOutput);
        add!(true, PutItemOutput, UpdateItemOutput, TransactWriteItemsOutput);
        Ok(())
    }
}
