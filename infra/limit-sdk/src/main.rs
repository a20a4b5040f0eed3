//! A program to compare functions with: one write for each event, by a client with the SDK's own transport and
//! settings. Only the credentials are set up as in our functions: they come straight from the environment.

use std::env;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::types::AttributeValue::{N, S};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (id, secret) = (env::var("AWS_ACCESS_KEY_ID")?, env::var("AWS_SECRET_ACCESS_KEY")?);
    let mut config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(env::var("AWS_REGION")?))
        .credentials_provider(Credentials::new(id, secret, env::var("AWS_SESSION_TOKEN").ok(), None, "environment"))
        .http_client(Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https());
    config.set_endpoint_url(env::var("AWS_ENDPOINT_URL").ok());
    let (client, table) = (&Client::from_conf(config.build()), &env::var("KEYS_TABLE")?);
    run(service_fn(move |_: LambdaEvent<Value>| async move {
        let update =
            client.update_item().table_name(table).key("pk", S("limit".to_owned())).key("sk", S("-".to_owned()));
        let update = update.update_expression("ADD calls :one").expression_attribute_values(":one", N("1".to_owned()));
        update.send().await?;
        Ok::<_, Error>(json!({ "statusCode": 200 }))
    }))
    .await
}
