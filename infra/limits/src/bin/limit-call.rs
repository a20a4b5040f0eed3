//! The least that a function with a store can be: one SDK call for each event, by the functions' own client.

use std::env;

use aws_sdk_dynamodb::types::AttributeValue::S;
use lambda_http::Error;
use lambda_http::lambda_runtime::{LambdaEvent, run, service_fn};
use serde_json::{Value, json};
use shared::aws::{Environment, Patience};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = &Environment::read(&|name| env::var(name).ok())?.dynamodb(Patience::Request);
    let table = &env::var("KEYS_TABLE")?;
    run(service_fn(move |_: LambdaEvent<Value>| async move {
        let get = client.get_item().table_name(table).key("pk", S("nobody".to_owned())).key("sk", S("key".to_owned()));
        let is_there = get.send().await?.item.is_some();
        Ok::<_, Error>(json!({ "statusCode": if is_there { 200 } else { 404 } }))
    }))
    .await
}
