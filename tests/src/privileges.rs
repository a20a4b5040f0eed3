//! Functions run with the variables and privileges that the template gives them, and with nothing else. Anything else
//! is refused and fails the test. So a deployed function may do whatever a test makes it do.
//!
//! Records what the functions of a stack use, and compares it with what the template gives them.
//!
//! The privileges that AWS calls need.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use aws_sdk_codedeploy::operation::get_deployment::GetDeploymentInput;
use aws_sdk_codedeploy::operation::put_lifecycle_event_hook_execution_status::PutLifecycleEventHookExecutionStatusInput;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemInput;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableInput;
use aws_sdk_dynamodb::operation::get_item::GetItemInput;
use aws_sdk_dynamodb::operation::put_item::PutItemInput;
use aws_sdk_dynamodb::operation::query::QueryInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_sdk_dynamodb::types::TransactWriteItem;
use aws_sdk_lambda::operation::invoke::InvokeInput;
use aws_sdk_s3::operation::get_object::GetObjectInput;
use aws_sdk_s3::operation::put_object::PutObjectInput;
use aws_sdk_secretsmanager::operation::describe_secret::DescribeSecretInput;
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueInput;
use aws_sdk_sqs::operation::delete_message_batch::DeleteMessageBatchInput;
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesInput;
use aws_sdk_sqs::operation::get_queue_url::GetQueueUrlInput;
use aws_sdk_sqs::operation::receive_message::ReceiveMessageInput;
use aws_sdk_sqs::operation::send_message::SendMessageInput;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchInput;
use common::resources::PARTITION_KEY;
use local::host::UseObserver;
use serde_json::Value;

use crate::arn;
use crate::secrets;
use crate::template::Template;

/// Something that the template gives to a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionGrant {
    /// A variable of its environment.
    Variable(String),
    /// The right to perform an action on a resource.
    Privilege {
        /// The action's name in policies, such as `dynamodb:GetItem`.
        action: String,
        /// The resource's ARN.
        resource: String,
    },
}

impl FunctionGrant {
    pub(crate) fn privilege(action: impl Into<String>, resource: impl Into<String>) -> Self {
        Self::Privilege { action: action.into(), resource: resource.into() }
    }
}

impl fmt::Display for FunctionGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Privilege { action, resource } => {
                // The part of the ARN after service, region and account.
                write!(f, "{action} on {}", resource.splitn(6, ':').last().unwrap_or_default())
            }
        }
    }
}

/// The prefix of the variables that Lambda itself sets.
const LAMBDA_VARIABLE_PREFIX: &str = "AWS_";

/// Records what each function of a stack uses. If a function was refused anything, dropping the ledger fails the
/// test, so no retry or fallback in the function can hide it.
#[derive(Debug, Default)]
pub struct Ledger(Arc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    used: Mutex<BTreeSet<(String, FunctionGrant)>>,
    refusals: Mutex<BTreeSet<String>>,
    /// The text that makes a call panic that has it.
    panics_about: Mutex<Option<String>>,
}

/// Intercepts the AWS calls of one function.
#[derive(Debug)]
struct CallInterceptor {
    function: &'static str,
    entries: Arc<Entries>,
}

impl Ledger {
    /// Returns the observer that writes into this ledger.
    pub fn observer(&self) -> Arc<dyn UseObserver> {
        Arc::clone(&self.0) as _
    }

    /// Lets every call to AWS panic from now on that has this text, or none.
    pub fn panic_about(&self, text: Option<&str>) {
        *self.0.panics_about.lock().unwrap() = text.map(str::to_owned);
    }

    /// Returns what the functions have used so far, by function.
    pub fn used(&self) -> BTreeSet<(String, FunctionGrant)> {
        self.0.used.lock().unwrap().clone()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let refusals: Vec<_> = std::mem::take(&mut *self.0.refusals.lock().unwrap()).into_iter().collect();
        assert!(refusals.is_empty() || std::thread::panicking(), "{}", refusals.join("\n"));
        secrets::assert_none_found();
    }
}

impl Entries {
    /// Records a privilege that a call needs. What the call names must be what the template's condition allows.
    fn record_call(&self, function: &str, privilege: FunctionGrant, named: &Named) -> Result<(), String> {
        let condition = Template::read().functions.get(function).and_then(|given| given.conditions.get(&privilege));
        if let Some(other) = condition.and_then(|condition| named.not_allowed_by(condition)) {
            return Err(self.refuse(format!("{function} may not name {other} in {privilege}")));
        }
        self.record(function, privilege)
    }

    fn record(&self, function: &str, grant: FunctionGrant) -> Result<(), String> {
        let given = Template::read().functions.get(function).map(|function| &function.grants);
        if !given.is_some_and(|given| given.contains(&grant)) {
            return Err(self.refuse(format!("{function} needs {grant}, which template.yaml does not give it")));
        }
        self.used.lock().unwrap().insert((function.to_owned(), grant));
        Ok(())
    }

    fn refuse(&self, refusal: String) -> String {
        if self.refusals.lock().unwrap().insert(refusal.clone()) {
            eprintln!("{refusal}");
        }
        refusal
    }
}

impl UseObserver for Entries {
    fn interceptor(self: Arc<Self>, function: &'static str) -> SharedInterceptor {
        SharedInterceptor::new(CallInterceptor { function, entries: self })
    }

    fn has_variable(&self, function: &'static str, name: &str) -> bool {
        name.starts_with(LAMBDA_VARIABLE_PREFIX)
            || self.record(function, FunctionGrant::Variable(name.to_owned())).is_ok()
    }
}

impl Intercept for CallInterceptor {
    fn name(&self) -> &'static str {
        "Privileges"
    }

    fn read_before_serialization(
        &self,
        call: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let unknown = || self.entries.refuse(format!("no privileges are listed for this call: {:?}", call.input()));
        let panics_about = self.entries.panics_about.lock().unwrap().clone();
        assert!(!panics_about.is_some_and(|text| format!("{:?}", call.input()).contains(&text)), "as the test wants");
        let named = Named::by(call);
        for privilege in needs(call).ok_or_else(unknown)? {
            self.entries.record_call(self.function, privilege, &named)?;
        }
        Ok(())
    }

    fn read_before_transmit(
        &self,
        call: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let operation = call.request().headers().get("x-amz-target").unwrap_or("a call");
        secrets::search(
            call.request().body().bytes().unwrap_or_default(),
            &format!("{operation} of {}", self.function),
        );
        Ok(())
    }
}

/// What a call to DynamoDB names, by the keys of conditions: the partition key of its row, and attributes.
#[derive(Default)]
struct Named(BTreeMap<&'static str, BTreeSet<String>>);

impl Named {
    fn by(call: &SdkCall<'_>) -> Self {
        let input = call.input();
        let (key, names) = if let Some(update) = input.downcast_ref::<UpdateItemInput>() {
            (update.key(), update.expression_attribute_names())
        } else if let Some(get) = input.downcast_ref::<GetItemInput>() {
            (get.key(), get.expression_attribute_names())
        } else {
            return Self::default();
        };
        let leading = key.and_then(|key| key.get(PARTITION_KEY)?.as_s().ok()).cloned();
        let of_key = key.into_iter().flat_map(|key| key.keys());
        let attributes = of_key.chain(names.into_iter().flat_map(|names| names.values())).cloned();
        Self(
            [("dynamodb:LeadingKeys", leading.into_iter().collect()), ("dynamodb:Attributes", attributes.collect())]
                .into(),
        )
    }

    /// Returns a name that a condition does not allow, if there is one.
    fn not_allowed_by(&self, condition: &Value) -> Option<&String> {
        let allowed = condition["ForAllValues:StringLike"].as_object().into_iter().flatten();
        let mut others = allowed.flat_map(|(key, patterns)| {
            let is_allowed = |name: &&String| {
                patterns.as_array().unwrap().iter().filter_map(Value::as_str).any(|pattern| {
                    match pattern.split_once('*') {
                        Some((start, _)) => name.starts_with(start),
                        None => name.as_str() == pattern,
                    }
                })
            };
            self.0.get(key.as_str()).into_iter().flatten().filter(move |name| !is_allowed(name))
        });
        others.next()
    }
}

type SdkCall<'c> = BeforeSerializationInterceptorContextRef<'c>;
type Needs = Vec<FunctionGrant>;

/// Returns the privileges that a call needs, or `None` for an operation that is not listed here because no function
/// uses it.
pub(super) fn needs(call: &SdkCall<'_>) -> Option<Needs> {
    None.or_else(|| for_input(call, |get: &GetItemInput| on_table("GetItem", get.table_name())))
        .or_else(|| for_input(call, |put: &PutItemInput| on_table("PutItem", put.table_name())))
        .or_else(|| for_input(call, |update: &UpdateItemInput| on_table("UpdateItem", update.table_name())))
        .or_else(|| for_input(call, query))
        .or_else(|| for_input(call, batch_get))
        .or_else(|| {
            for_input(call, |write: &TransactWriteItemsInput| write.transact_items().iter().flat_map(part).collect())
        })
        .or_else(|| for_input(call, |send: &SendMessageInput| on_queue("SendMessage", send.queue_url())))
        // Batches need the privilege of the single operation.
        .or_else(|| for_input(call, |send: &SendMessageBatchInput| on_queue("SendMessage", send.queue_url())))
        .or_else(|| for_input(call, |delete: &DeleteMessageBatchInput| on_queue("DeleteMessage", delete.queue_url())))
        .or_else(|| for_input(call, |receive: &ReceiveMessageInput| on_queue("ReceiveMessage", receive.queue_url())))
        .or_else(|| for_input(call, |get: &GetQueueAttributesInput| on_queue("GetQueueAttributes", get.queue_url())))
        .or_else(|| for_input(call, get_object))
        .or_else(|| for_input(call, |put: &PutObjectInput| on_objects("PutObject", put.bucket())))
        .or_else(|| for_input(call, |get: &GetSecretValueInput| on_secret("GetSecretValue", get.secret_id())))
        .or_else(|| of_the_hook(call))
}

/// Returns what the calls need that only the pre-traffic hook makes.
fn of_the_hook(call: &SdkCall<'_>) -> Option<Needs> {
    None.or_else(|| for_input(call, |table: &DescribeTableInput| on_table("DescribeTable", table.table_name())))
        .or_else(|| for_input(call, |get: &GetQueueUrlInput| on_queue("GetQueueUrl", get.queue_name())))
        .or_else(|| for_input(call, |secret: &DescribeSecretInput| on_secret("DescribeSecret", secret.secret_id())))
        .or_else(|| for_input(call, |invoke: &InvokeInput| on_function(invoke.function_name().unwrap_or_default())))
        .or_else(|| for_input(call, |_: &GetDeploymentInput| on_deployments("GetDeployment")))
        .or_else(|| {
            for_input(call, |_: &PutLifecycleEventHookExecutionStatusInput| {
                on_deployments("PutLifecycleEventHookExecutionStatus")
            })
        })
}

fn for_input<T: Debug + Send + Sync + 'static>(call: &SdkCall<'_>, needs: impl FnOnce(&T) -> Needs) -> Option<Needs> {
    call.input().downcast_ref().map(needs)
}

fn on_table(operation: &str, table: Option<&str>) -> Needs {
    vec![FunctionGrant::privilege(format!("dynamodb:{operation}"), arn::table(table.unwrap_or_default()))]
}

/// An index is a resource of its own.
fn query(query: &QueryInput) -> Needs {
    let Some(index) = query.index_name() else { return on_table("Query", query.table_name()) };
    on_table("Query", Some(&format!("{}/index/{index}", query.table_name().unwrap_or_default())))
}

fn batch_get(batch: &BatchGetItemInput) -> Needs {
    let tables = batch.request_items().into_iter().flat_map(|items| items.keys());
    tables.flat_map(|table| on_table("BatchGetItem", Some(table))).collect()
}

/// Each part of a transaction needs what it would need alone. Only a condition check has a privilege of its own.
fn part(part: &TransactWriteItem) -> Needs {
    let parts = [
        part.put().map(|put| on_table("PutItem", Some(put.table_name()))),
        part.update().map(|update| on_table("UpdateItem", Some(update.table_name()))),
        part.delete().map(|delete| on_table("DeleteItem", Some(delete.table_name()))),
        part.condition_check().map(|check| on_table("ConditionCheckItem", Some(check.table_name()))),
    ];
    parts.into_iter().flatten().flatten().collect()
}

/// A queue's URL ends with its name.
fn on_queue(operation: &str, url: Option<&str>) -> Needs {
    let name = url.and_then(|url| url.rsplit('/').next()).unwrap_or_default();
    vec![FunctionGrant::privilege(format!("sqs:{operation}"), arn::queue(name))]
}

/// Without the second privilege, S3 does not say that an object is absent.
fn get_object(get: &GetObjectInput) -> Needs {
    let list = FunctionGrant::privilege("s3:ListBucket", arn::bucket(get.bucket().unwrap_or_default()));
    [on_objects("GetObject", get.bucket()), vec![list]].concat()
}

fn on_objects(operation: &str, bucket: Option<&str>) -> Needs {
    let objects = format!("{}/*", arn::bucket(bucket.unwrap_or_default()));
    vec![FunctionGrant::privilege(format!("s3:{operation}"), objects)]
}

/// The versions of a function are one resource of a policy.
fn on_function(name: &str) -> Needs {
    let version = name.strip_prefix(&arn::function("")).and_then(|named| named.split_once(':'));
    let resource = version.map_or_else(|| arn::function(name), |(function, _)| arn::function(&format!("{function}:*")));
    vec![FunctionGrant::privilege("lambda:InvokeFunction", resource)]
}

fn on_deployments(operation: &str) -> Needs {
    vec![FunctionGrant::privilege(format!("codedeploy:{operation}"), arn::deployments())]
}

fn on_secret(operation: &str, name: Option<&str>) -> Needs {
    vec![FunctionGrant::privilege(format!("secretsmanager:{operation}"), arn::secret(name.unwrap_or_default()))]
}
