//! The least that a function with a store can do: one write for each event, by the client that our functions use.

use std::env;

use aws_sdk_dynamodb::types::AttributeValue::{N, S};
use common::aws::{Environment, Patience};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = &Environment::read(&|name| env::var(name).ok())?.dynamodb(Patience::Request);
    let table = &env::var("KEYS_TABLE")?;
    run(service_fn(move |_: LambdaEvent<Value>| async move {
        let update =
            client.update_item().table_name(table).key("pk", S("limit".to_owned())).key("sk", S("-".to_owned()));
        let update = update.update_expression("ADD calls :one").expression_attribute_values(":one", N("1".to_owned()));
        update.send().await?;
        Ok::<_, Error>(json!({ "statusCode": 200 }))
    }))
    .await
}
