//! The account's settings: the function `account`, command by command.

mod audit;
mod commands;
mod refused;
mod resends;
mod schema;

use account::{Account, CommandName};
use common::runtime::Worker;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL, text};
use tests::{Proxy, SettingsIds, Stack};

/// A stack with the account's settings of one user.
pub(crate) struct Settings {
    pub(crate) stack: Stack,
    account: Account,
}

/// A command that was done, and its answer.
pub(crate) struct Done {
    command: CommandName,
    event: Value,
    answer: Value,
}

/// Returns the event of a command.
fn event(user: &str, command: CommandName, parameters: &Value) -> Value {
    json!({"version": 1, "user_id": user, "command": command, "parameters": parameters, "actor": "settings page"})
}

impl Settings {
    pub(crate) async fn new() -> Self {
        let stack = Stack::new().await;
        let account = stack.account_at(&stack.aws.endpoint_url).await;
        Self { stack, account }
    }

    /// Makes settings whose calls to AWS go through a proxy.
    async fn behind_proxy() -> (Self, Proxy) {
        let stack = Stack::new().await;
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        let account = stack.account_at(&proxy.url).await;
        (Self { stack, account }, proxy)
    }

    /// Hands an event to the function. Returns its answer.
    async fn answer(&self, event: Value) -> Value {
        self.account.work(event).await.unwrap()
    }

    /// Returns the code of the error that a command of the owner is answered with, or nothing.
    pub(crate) async fn code(&self, command: CommandName, parameters: &Value) -> String {
        let answer = self.answer(event(OWNER, command, parameters)).await;
        answer["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Runs a command of the owner that must succeed. Returns its result.
    pub(crate) async fn done(&self, command: CommandName, parameters: Value) -> Value {
        let answer = self.answer(event(OWNER, command, &parameters)).await;
        assert!(answer["result"].is_object(), "{command}: {answer}");
        answer["result"].clone()
    }

    /// Adds an endpoint of the owner. Returns its id.
    async fn endpoint(&self) -> String {
        text(&self.done(CommandName::EndpointsAdd, json!({"url": URL, "events": ["listing.sold"]})).await["id"])
    }

    /// Makes a key, an endpoint and a delivery of the owner.
    async fn ids(&self) -> SettingsIds {
        SettingsIds::make(URL, async |command, parameters| self.done(command, parameters).await).await
    }

    /// Makes a key, an endpoint and a delivery of the owner. Returns the parameters that name each.
    async fn belongings(&self) -> [Value; 3] {
        let SettingsIds { key, endpoint, delivery } = self.ids().await;
        [json!({"key_id": key}), json!({"endpoint_id": endpoint}), json!({"delivery_id": delivery})]
    }

    /// Does everything that an owner can do. Returns the commands and their answers.
    pub(crate) async fn walk(&self) -> Vec<Done> {
        let mut walked = Vec::new();
        let mut step = async |command: CommandName, parameters: Value| {
            let event = event(OWNER, command, &parameters);
            let answer = self.answer(event.clone()).await;
            assert!(answer["result"].is_object(), "{event}: {answer}");
            let result = answer["result"].clone();
            walked.push(Done { command, event, answer });
            result
        };
        let ids = SettingsIds::make(URL, &mut step).await;
        for command in [CommandName::KeysList, CommandName::EndpointsList] {
            step(command, json!({})).await;
        }
        for (command, parameters) in ids.commands() {
            step(command, parameters).await;
        }
        walked
    }
}
