//! What is printed once everything runs: text with lines to paste for people, or JSON for scripts.

use std::fmt::Write;

use guard::LOOPBACK_VARIABLE;
use serde_json::{Value, json};
use types::ids::UserId;

use crate::environment::Variables;
use crate::seed::DemoKey;

/// What a user needs to know about a running stack.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The base URL of the API; `None` if only the AWS side runs.
    pub base_url: Option<String>,
    /// The demo user, if there is a demo market.
    pub user_id: Option<UserId>,
    /// Keys of the demo user, the one with every scope first.
    pub keys: Vec<DemoKey>,
    /// The variables that functions and `marketctl` need.
    pub variables: Variables,
    /// Whether the AWS side is a foreign endpoint.
    pub is_foreign: bool,
}

impl Ready {
    /// Returns the document for scripts, to be printed on one line.
    pub fn json(&self) -> Value {
        json!({
            "base_url": self.base_url,
            "aws_endpoint_url": self.variables.get("AWS_ENDPOINT_URL"),
            "user_id": self.user_id,
            "api_key": self.keys.first().map(|key| key.text.reveal()),
            "env": self.variables,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// Returns the text for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(url) = &self.base_url {
            let _ = writeln!(text, "The API is ready at {url}; its docs are at {url}/docs");
            let _ = writeln!(text, "Webhooks sent to {url}/dev/inbox are shown on that page\n");
        }
        if let (Some(user), Some(first)) = (self.user_id, self.keys.first()) {
            let _ = writeln!(text, "Keys of the demo user {user}:");
            for key in &self.keys {
                let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
                let _ = writeln!(text, "  {}  {}", key.text.reveal(), scopes.join(" "));
            }
            if let Some(url) = &self.base_url {
                let _ = write!(text, "\nTry it:\n{}", curl_lines(url, first.text.reveal()));
            }
        }
        let endpoint = self.variables.get("AWS_ENDPOINT_URL").unwrap_or_default();
        // Whoever starts only the AWS side runs functions against it, and they need all variables.
        let is_alone = self.base_url.is_none();
        let readers = if is_alone { "functions, marketctl and the AWS CLI" } else { "marketctl and the AWS CLI" };
        let _ = writeln!(text, "\nDynamoDB, SQS, Secrets Manager and S3 are at {endpoint}. For {readers}:");
        let of_tools = |name: &str| is_alone || name.starts_with("AWS_") || name == LOOPBACK_VARIABLE;
        // The credentials for a foreign endpoint are the user's own and are not printed.
        let own = |name: &str| name == "AWS_ENDPOINT_URL" || name == LOOPBACK_VARIABLE;
        let shown = self.variables.iter().filter(|(name, _)| of_tools(name) && (!self.is_foreign || own(name)));
        for (name, value) in shown {
            let _ = writeln!(text, "  export {name}={value}");
        }
        let _ = write!(text, "\nPress Ctrl-C to stop.");
        text
    }
}

fn curl_lines(url: &str, key: &str) -> String {
    let paths = [
        "/v1/public/me",
        "/v1/public/catalog?q=redline&page_size=2",
        "/v1/public/listings?sort=price_asc&max_price=5&page_size=2",
        "/v1/public/orders?page_size=1",
        "/v1/public/wallet/balance",
    ];
    let lines = paths.map(|path| format!("  curl -sS -H 'Authorization: Bearer {key}' '{url}{path}'\n"));
    lines.concat()
}
