//! The account's settings: the function `account`, command by command.

mod audit;
mod commands;
mod invoke;
mod others;
mod refused;
mod schema;

use account::{Account, CommandName};
use runtime::Worker;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, URL, text};
use tests::{Proxy, Stack};

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

    /// Runs a command of the owner that must succeed. Returns its result.
    async fn done(&self, command: CommandName, parameters: Value) -> Value {
        let answer = self.answer(event(OWNER, command, &parameters)).await;
        assert!(answer["result"].is_object(), "{command}: {answer}");
        answer["result"].clone()
    }

    /// Adds an endpoint of the owner. Returns its id.
    async fn endpoint(&self) -> String {
        text(&self.done(CommandName::EndpointsAdd, json!({"url": URL, "events": ["listing.sold"]})).await["id"])
    }

    /// Makes a key, an endpoint and a delivery of the owner. Returns the parameters that name each.
    async fn belongings(&self) -> [Value; 3] {
        let key = self.done(CommandName::KeysCreate, json!({"scopes": ["catalog:read"]})).await;
        let endpoint = self.endpoint().await;
        let sent = self.done(CommandName::EndpointsTest, json!({"endpoint_id": endpoint})).await;
        [json!({"key_id": key["key_id"]}), json!({"endpoint_id": endpoint}), sent]
    }

    /// Does everything that an owner can do. Returns the commands and their answers.
    pub(crate) async fn walk(&self) -> Vec<Done> {
        let mut walked = Vec::new();
        let created = json!({"name": "bot", "scopes": ["catalog:read"], "expires_at": "2099-01-01T00:00:00Z"});
        let key = self.step(&mut walked, CommandName::KeysCreate, created).await["key_id"].clone();
        self.step(&mut walked, CommandName::KeysList, json!({})).await;
        self.step(&mut walked, CommandName::KeysShow, json!({"key_id": key})).await;
        self.step(&mut walked, CommandName::KeysRename, json!({"key_id": key, "name": "bot 2"})).await;
        let rotated = json!({"key_id": key, "overlap_seconds": 60});
        let next = self.step(&mut walked, CommandName::KeysRotate, rotated).await["key_id"].clone();
        self.step(&mut walked, CommandName::KeysRevoke, json!({"key_id": next})).await;

        let added = json!({"url": URL, "events": ["listing.sold"]});
        let id = self.step(&mut walked, CommandName::EndpointsAdd, added).await["id"].clone();
        let this = json!({"endpoint_id": id});
        self.step(&mut walked, CommandName::EndpointsList, json!({})).await;
        let update = json!({"endpoint_id": id, "events": ["wallet.deposit"]});
        self.step(&mut walked, CommandName::EndpointsUpdate, update).await;
        let sent = self.step(&mut walked, CommandName::EndpointsTest, this.clone()).await;
        self.step(&mut walked, CommandName::DeliveriesList, this.clone()).await;
        self.step(&mut walked, CommandName::DeliveriesShow, sent.clone()).await;
        self.step(&mut walked, CommandName::DeliveriesResend, sent).await;
        self.step(&mut walked, CommandName::EndpointsRotateSecret, this.clone()).await;
        let activate = json!({"endpoint_id": id, "activate": true});
        self.step(&mut walked, CommandName::EndpointsRotateSecret, activate).await;
        self.step(&mut walked, CommandName::EndpointsDisable, this.clone()).await;
        self.step(&mut walked, CommandName::EndpointsEnable, this.clone()).await;
        self.step(&mut walked, CommandName::EndpointsRemove, this).await;
        walked
    }

    async fn step(&self, walked: &mut Vec<Done>, command: CommandName, parameters: Value) -> Value {
        let event = event(OWNER, command, &parameters);
        let answer = self.answer(event.clone()).await;
        assert!(answer["result"].is_object(), "{event}: {answer}");
        let result = answer["result"].clone();
        walked.push(Done { command, event, answer });
        result
    }
}
