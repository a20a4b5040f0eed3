//! Runs `marketctl webhooks` against a stack.

use local::environment::Variables;
use serde_json::Value;

use crate::binaries::{Program, marketctl};
use crate::stack::Stack;

/// An account that owns endpoints.
pub const OWNER: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
/// A URL whose host is a public address, so that no name has to be resolved.
pub const URL: &str = "https://93.184.215.14/hook";

/// Runs `marketctl webhooks` against the stack of these variables.
pub struct WebhooksCli {
    pub variables: Variables,
}

impl WebhooksCli {
    pub fn new(stack: &Stack) -> Self {
        Self { variables: Variables::new(&stack.aws.endpoint_url) }
    }

    /// Runs a command. Returns what it printed and its exit code.
    pub async fn run(&self, line: &str) -> Program {
        let arguments: Vec<&str> = ["webhooks"].into_iter().chain(line.split_whitespace()).collect();
        marketctl(&self.variables, &arguments, "").await
    }

    /// Runs a command that must succeed. Returns its document.
    pub async fn done(&self, line: &str) -> Value {
        let run = self.run(&format!("{line} --json")).await;
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{line}: {run:?}");
        run.json()
    }

    /// Runs a command that must be refused. Returns the reason.
    pub async fn refused(&self, line: &str) -> String {
        let run = self.run(&format!("{line} --json")).await;
        assert!([1, 2].contains(&run.code) && run.stdout.is_empty(), "{line}: {run:?}");
        let document: Value = serde_json::from_str(&run.stderr).unwrap();
        assert!(document["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
        document["error"].as_str().unwrap().to_owned()
    }

    /// Adds an endpoint. Returns its id and its secret.
    pub async fn add(&self, user: &str) -> (String, String) {
        let added = self.done(&format!("add --user {user} --url {URL} --event listing.sold")).await;
        (text(&added["id"]), text(&added["secret"]))
    }
}

/// Returns a value that must be text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
