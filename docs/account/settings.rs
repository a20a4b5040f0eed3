//! Makes a key and a webhook endpoint for a user: `account-settings FUNCTION USER_ID URL`

use std::error::Error;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::{Builder, retry::RetryConfig};
use aws_sdk_lambda::primitives::Blob;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use serde_json::{Value, json};

struct Settings {
    client: Client,
    function: String,
}

impl Settings {
    /// Makes one attempt per command, because a command that is sent again may be done twice.
    fn new(config: &SdkConfig, function: String) -> Self {
        let config = Builder::from(config).retry_config(RetryConfig::disabled()).build();
        Self { client: Client::from_conf(config), function }
    }

    /// Returns the answer to a command: its `result`, or an `error` that says why it was not done. After an `Err`,
    /// nobody knows whether it was done.
    async fn answer(&self, user_id: &str, command: &str, parameters: Value) -> Result<Value, Box<dyn Error>> {
        let request = json!({"version": 1, "user_id": user_id, "command": command, "parameters": parameters});
        let invoke = self.client.invoke().function_name(&self.function).payload(Blob::new(request.to_string()));
        let reply = invoke.send().await?;
        if reply.function_error().is_some() {
            return Err(format!("no answer to {command}").into());
        }
        let payload = reply.payload.ok_or("no payload")?;
        Ok(serde_json::from_slice(payload.as_ref())?)
    }

    async fn result(&self, user_id: &str, command: &str, parameters: Value) -> Result<Value, Box<dyn Error>> {
        let answer = self.answer(user_id, command, parameters).await?;
        answer.get("result").cloned().ok_or_else(|| format!("{command}: {}", answer["error"]["code"]).into())
    }
}

async fn make_key_and_endpoint(settings: &Settings, user_id: &str, url: &str) -> Result<(), Box<dyn Error>> {
    let new_key = json!({"name": "My program", "scopes": ["orders:read"]});
    let key = settings.result(user_id, "keys.create", new_key).await?;
    // Show `key["api_key"]` to the user, this one time. Never log it.
    let new_endpoint = json!({"url": url, "events": ["order.completed"]});
    let endpoint = settings.result(user_id, "endpoints.add", new_endpoint).await?;
    // The same is true of `endpoint["secret"]`.
    let of_endpoint = json!({"endpoint_id": endpoint["id"]});
    let listed = settings.result(user_id, "deliveries.list", of_endpoint).await?;
    let deliveries = listed["deliveries"].as_array().map_or(0, Vec::len);
    let id = |made: &Value, name: &str| made[name].as_str().unwrap_or_default().to_owned();
    println!("key {}, endpoint {}, deliveries: {deliveries}", id(&key, "key_id"), id(&endpoint, "id"));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [function, user_id, url] = arguments.as_slice() else { return Err("name FUNCTION, USER_ID and URL".into()) };
    let http = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    make_key_and_endpoint(&Settings::new(&config, function.clone()), user_id, url).await
}
